//! The straw-man hub: the least that verifies, deduplicates and stores durably behind actix.
//!
//! No policy, no quota, no names: one known key, one RocksDB, one writer thread that syncs once per batch. Where it is
//! told a NATS server it also stores in a stream and waits for the ack, without dedup. And it serves the parts on their
//! own: a greeting, a verify-only route, an unsynced put, and a bare WebSocket fan-out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use anyhow::Context;
use async_nats::jetstream::{Context as JetStream, stream};
use clap::Args;
use ed25519_dalek::{Signature, VerifyingKey};
use rocksdb::{DB, Options as DbOptions, WriteBatch, WriteOptions};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::jetstream::connect;

/// How the straw man is started.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The port of the loopback interface.
    #[arg(long)]
    port: u16,
    /// An empty folder.
    #[arg(long)]
    folder: PathBuf,
    /// The sender's public key, as 64 hexadecimal digits.
    #[arg(long)]
    key: String,
    /// Whether ids are remembered.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    dedup: bool,
    /// NATS servers, separated by commas, for `/publish`.
    #[arg(long)]
    nats: Option<String>,
    /// Copies of the stream there.
    #[arg(long, default_value_t = 1)]
    replicas: usize,
}

/// The largest batch of the writer, in requests.
const BATCH_MAX: usize = 2048;

struct Job {
    message: ([u8; 24], Vec<u8>),
    dedup: Option<[u8; 16]>,
    done: oneshot::Sender<bool>,
}

struct Straw {
    db: Arc<DB>,
    key: VerifyingKey,
    dedup: bool,
    writer: mpsc::Sender<Job>,
    next: AtomicU64,
    sockets: Mutex<Vec<actix_ws::Session>>,
    jetstream: Option<JetStream>,
}

/// Serves until it is killed.
pub(crate) fn serve(options: &Options) -> anyhow::Result<()> {
    let mut db_options = DbOptions::default();
    db_options.create_if_missing(true);
    let db = Arc::new(DB::open(&db_options, &options.folder)?);
    let (writer, jobs) = mpsc::channel(16_384);
    let store = db.clone();
    std::thread::spawn(move || write(&store, jobs));
    let mut straw = Straw {
        db,
        key: key_of(&options.key)?,
        dedup: options.dedup,
        writer,
        next: AtomicU64::new(0),
        sockets: Mutex::default(),
        jetstream: None,
    };
    let port = options.port;
    actix_web::rt::System::new().block_on(async move {
        if let Some(urls) = &options.nats {
            straw.jetstream = Some(stream_on(urls, options.replicas).await?);
        }
        let straw = web::Data::new(straw);
        HttpServer::new(move || {
            App::new()
                .app_data(straw.clone())
                .app_data(web::PayloadConfig::new(1 << 20))
                .route("/hello", web::get().to(hello))
                .route("/verify", web::post().to(verify))
                .route("/accept", web::post().to(accept))
                .route("/publish", web::post().to(publish))
                .route("/put", web::post().to(put))
                .route("/ws", web::get().to(socket))
                .route("/fan/{rounds}", web::post().to(fan))
        })
        .backlog(16_384)
        .max_connections(60_000)
        .bind(("127.0.0.1", port))?
        .run()
        .await?;
        anyhow::Ok(())
    })
}

/// A stream of its own: a subject a mailbox, nothing else.
async fn stream_on(urls: &str, replicas: usize) -> anyhow::Result<JetStream> {
    let jetstream = connect(urls).await?;
    let config = stream::Config {
        name: "STRAW".to_owned(),
        subjects: vec!["straw.*".to_owned()],
        num_replicas: replicas,
        ..stream::Config::default()
    };
    jetstream.create_stream(config).await?;
    Ok(jetstream)
}

fn key_of(digits: &str) -> anyhow::Result<VerifyingKey> {
    let bytes: [u8; 32] = hex::decode(digits)?
        .try_into()
        .ok()
        .context("--key takes 64 hexadecimal digits")?;
    Ok(VerifyingKey::from_bytes(&bytes)?)
}

fn write(db: &DB, mut jobs: mpsc::Receiver<Job>) {
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    let mut pending = Vec::new();
    while jobs.blocking_recv_many(&mut pending, BATCH_MAX) > 0 {
        let mut batch = WriteBatch::default();
        for job in &pending {
            if let Some(id) = job.dedup {
                if db.get_pinned(id).ok().flatten().is_some() {
                    continue;
                }
                batch.put(id, job.message.0);
            }
            batch.put(job.message.0, &job.message.1);
        }
        let written = db.write_opt(batch, &synced).is_ok();
        for job in pending.drain(..) {
            // A requester that went away does not need the answer.
            let _gone = job.done.send(written);
        }
    }
}

async fn hello() -> &'static str {
    "Hello, world!"
}

/// Parse, canonical form, strict verification: the envelope's id when it is genuine.
fn genuine(straw: &Straw, body: &[u8]) -> Option<[u8; 16]> {
    let mut value: Value = serde_json::from_slice(body).ok()?;
    let signature = value.as_object_mut()?.remove("sig")?;
    let bytes: [u8; 64] = aip_protocol::signature::Signature::parse(signature.as_str()?)
        .ok()?
        .as_bytes()
        .to_owned();
    // Members come out sorted, and envelopes of the benchmark are ASCII without floats: this is the canonical form.
    let mut input = b"aip/1 envelope\n".to_vec();
    serde_json::to_writer(&mut input, &value).ok()?;
    straw
        .key
        .verify_strict(&input, &Signature::from_bytes(&bytes))
        .ok()?;
    Some(
        uuid::Uuid::parse_str(value.get("id")?.as_str()?)
            .ok()?
            .into_bytes(),
    )
}

async fn verify(straw: web::Data<Straw>, body: web::Bytes) -> HttpResponse {
    match genuine(&straw, &body) {
        Some(_) => HttpResponse::Accepted().body("{\"status\":\"ok\"}"),
        None => HttpResponse::BadRequest().finish(),
    }
}

fn message_key(straw: &Straw) -> [u8; 24] {
    let number = straw.next.fetch_add(1, Ordering::Relaxed);
    let mut key = [0_u8; 24];
    let (mailbox, seq) = key.split_at_mut(16);
    mailbox.copy_from_slice(&u128::from(number % 1_000).to_be_bytes());
    seq.copy_from_slice(&number.to_be_bytes());
    key
}

async fn accept(straw: web::Data<Straw>, body: web::Bytes) -> HttpResponse {
    let Some(id) = genuine(&straw, &body) else {
        return HttpResponse::BadRequest().finish();
    };
    let (done, answer) = oneshot::channel();
    let job = Job {
        message: (message_key(&straw), body.to_vec()),
        dedup: straw.dedup.then_some(id),
        done,
    };
    if straw.writer.send(job).await.is_err() || answer.await != Ok(true) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    HttpResponse::Accepted().body("{\"status\":\"stored\"}")
}

async fn publish(straw: web::Data<Straw>, body: web::Bytes) -> HttpResponse {
    if genuine(&straw, &body).is_none() {
        return HttpResponse::BadRequest().finish();
    }
    let Some(jetstream) = &straw.jetstream else {
        return HttpResponse::NotFound().finish();
    };
    let mailbox = straw.next.fetch_add(1, Ordering::Relaxed) % 10_000;
    let stored = async { anyhow::Ok(jetstream.publish(format!("straw.{mailbox}"), body).await?.await?) };
    match stored.await {
        Ok(_) => HttpResponse::Accepted().body("{\"status\":\"stored\"}"),
        Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}

async fn put(straw: web::Data<Straw>, body: web::Bytes) -> HttpResponse {
    match straw.db.put(message_key(&straw), &body) {
        Ok(()) => HttpResponse::Accepted().body("{\"status\":\"put\"}"),
        Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}

async fn socket(
    request: HttpRequest,
    body: web::Payload,
    straw: web::Data<Straw>,
) -> actix_web::Result<HttpResponse> {
    let (response, session, mut stream) = actix_ws::handle(&request, body)?;
    if let Ok(mut sockets) = straw.sockets.lock() {
        sockets.push(session);
    }
    actix_web::rt::spawn(async move { while let Some(Ok(_)) = stream.recv().await {} });
    Ok(response)
}

async fn fan(straw: web::Data<Straw>, rounds: web::Path<u64>, body: web::Bytes) -> HttpResponse {
    let text = String::from_utf8_lossy(&body).into_owned();
    let mut sockets = straw.sockets.lock().map(|s| s.clone()).unwrap_or_default();
    for _ in 0..rounds.into_inner() {
        for socket in &mut sockets {
            if socket.text(text.clone()).await.is_err() {
                return HttpResponse::ServiceUnavailable().finish();
            }
        }
    }
    HttpResponse::Ok().body("sent")
}
