//! Prints `docs/protocol/errors.md` from the table of codes.

use aip_protocol::error::ErrorCode;

#[expect(clippy::print_stdout, reason = "printing the page is what this is for")]
fn main() {
    print!("{}", ErrorCode::page());
}
