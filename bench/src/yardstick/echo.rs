//! A provider that answers with its input and does nothing else: what a call costs beyond it is the market's.

use std::process::{Command, Stdio};

use actix_web::{App, HttpResponse, HttpServer, web};
use clap::Args;
use serde_json::{Value, json};

use crate::process::{Running, free_port, wait_for_port};

/// How it is started.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The port of the loopback interface.
    #[arg(long)]
    port: u16,
}

/// Serves until it is killed.
pub(crate) fn serve(options: &Options) -> anyhow::Result<()> {
    let port = options.port;
    actix_web::rt::System::new().block_on(async move {
        HttpServer::new(|| App::new().route("/invoke", web::post().to(invoke)))
            .workers(1)
            .backlog(4_096)
            .bind(("127.0.0.1", port))?
            .run()
            .await?;
        anyhow::Ok(())
    })
}

async fn invoke(call: web::Json<Value>) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "result": { "echo": call.get("input") } }))
}

/// Such a provider, as a process of its own.
#[derive(Debug)]
pub(crate) struct Echo {
    /// Its port.
    pub(crate) port: u16,
    _process: Running,
}

impl Echo {
    /// Starts one on a free port.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["echo", "--port", &port.to_string()])
            .stdout(Stdio::null());
        let process = Running::start(&mut command)?;
        wait_for_port(port)?;
        Ok(Self {
            port,
            _process: process,
        })
    }

    /// Where it is called.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/invoke", self.port)
    }
}
