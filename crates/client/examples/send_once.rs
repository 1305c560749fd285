//! Sends one message, and survives a crash at any point: what is to be sent is written down before the first attempt,
//! and a restart goes on with the same bytes.
//!
//! ```sh
//! cargo run --example send_once -- http://localhost:8080 alice.key bob#localhost:8080 "hello"
//! ```

use std::path::Path;

use aip_client::{Client, Draft, KeyFile, SealedEnvelope};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [hub, key, to, text] = arguments.as_slice() else {
        return Err("usage: send_once HUB KEY-FILE TO TEXT".into());
    };
    let client = Client::builder(hub).key_file(KeyFile::at(key))?.build()?;
    let outbox = Path::new("outbox.json");

    // What a crash left behind goes first. A hub that has it already says `duplicate`, and that is as good.
    let sealed = if outbox.exists() {
        SealedEnvelope::from_wire(std::fs::read(outbox)?)?
    } else {
        let sealed = client.seal(&Draft::text(to, text)).await?;
        std::fs::write(outbox, sealed.wire())?;
        sealed
    };
    let sent = client.submit(&sealed).await?;
    std::fs::remove_file(outbox)?;
    tell(&format!("{} is {:?}", sent.id, sent.status))
}

fn tell(line: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
