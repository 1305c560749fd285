//! The server's command line. Everything is in the library, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    aip_hub::commands::main()
}
