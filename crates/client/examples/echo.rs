//! Answers every message with what it says. Registers itself on the first start.
//!
//! ```sh
//! cargo run --example echo -- http://localhost:8080 echo.key echo
//! ```

use std::sync::Arc;

use aip_client::inbox::FileInbox;
use aip_client::{Client, Draft, Error, KeyFile, ListenOptions, Registration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [hub, key, name] = arguments.as_slice() else {
        return Err("usage: echo HUB KEY-FILE NAME".into());
    };
    let file = KeyFile::at(key);
    let inbox = Arc::new(FileInbox::open(file.state_folder().join("inbox"))?);
    let client = Client::builder(hub).key_file(file)?.build()?;
    if client.did().is_none() {
        client.register(name, Registration::default()).await?;
    }

    let mut listener = client.listen(inbox, ListenOptions::default());
    let answering = listener.run(|message| {
        let client = client.clone();
        async move {
            // Two echoes would answer each other for ever.
            if message.kind != "aip.message" || message.reply_to.is_some() {
                return Ok::<(), Error>(());
            }
            client
                .send(&Draft::reply(&message, message.content.clone()))
                .await
                .map(drop)
        }
    });
    tokio::select! {
        ended = answering => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    listener.close().await;
    Ok(())
}
