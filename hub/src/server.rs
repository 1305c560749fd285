//! The two listeners: the public one, and the operator's (health, metrics, administration).
//!
//! Both are bound before anything runs, so that a taken port ends the start with a sentence. Signals belong to
//! [`crate::lifecycle`]; this file only obeys its tokens. TLS is the job of the reverse proxy in front.

use std::any::Any;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::dev::Extensions;
use actix_web::dev::{Server, ServerHandle, ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::rt::net::TcpStream;
use actix_web::web::{Data, ServiceConfig};
use actix_web::{HttpServer, web};
use aip_protocol::error::ErrorCode;
use rustix::net::sockopt::set_tcp_user_timeout;

use crate::app::App;
use crate::error::ApiError;
use crate::front::front;
use crate::lifecycle::Lifecycle;
use crate::limits::{WRITE_BUFFER_BYTES, WRITE_STALL_SECS};
use crate::routes;

/// The same limit for a connection as a whole, in the unit of the socket option.
const WRITE_STALL_MILLIS: u32 = 1_000 * WRITE_STALL_SECS;

/// Time that a connection stays open for reading after its last answer was written, in seconds: a caller that still
/// sends would otherwise lose the answer. A closed WebSocket ends only after it, so it is short.
const DISCONNECT_TIMEOUT_SECS: u64 = 1;

/// The public listener's routes.
pub fn public(config: &mut ServiceConfig) {
    serve_all(config, routes::public());
}

/// The operator's listener's routes.
pub fn operator(config: &mut ServiceConfig) {
    serve_all(config, routes::operator());
}

fn serve_all(config: &mut ServiceConfig, endpoints: Vec<routes::Endpoint>) {
    for endpoint in endpoints {
        config.service(endpoint.into_resource());
    }
    config.default_service(web::to(no_route));
}

async fn no_route() -> Result<&'static str, ApiError> {
    Err(ApiError::refused(
        ErrorCode::NotFound,
        "There is nothing at this path. /docs lists what there is.",
    ))
}

/// The whole application of one listener, as the server and the tests run it.
pub fn application(
    app: Data<App>,
    doors: fn(&mut ServiceConfig),
) -> actix_web::App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = actix_web::Error,
        InitError = (),
    >,
> {
    actix_web::App::new()
        .app_data(app)
        .wrap(from_fn(front))
        .configure(doors)
}

/// Both listeners, bound and not yet running.
pub struct Servers {
    /// Where the public listener is bound.
    pub public_addr: SocketAddr,
    /// Where the operator's listener is bound.
    pub operator_addr: SocketAddr,
    public: Server,
    operator: Server,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers")
            .field("public_addr", &self.public_addr)
            .field("operator_addr", &self.operator_addr)
            .finish_non_exhaustive()
    }
}

impl Servers {
    /// Binds both listeners. A port 0 takes any free one; the fields tell which.
    ///
    /// # Errors
    /// The address that cannot be bound, and why.
    pub fn bind(app: &Data<App>) -> Result<Self, BindError> {
        let http = &app.settings.http;
        let workers = match http.workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let (public_addr, public) = listen(app, public, "listen", http.listen, workers)?;
        let (operator_addr, operator) = listen(app, operator, "operator-listen", http.operator_listen, 1)?;
        Ok(Self {
            public_addr,
            operator_addr,
            public,
            operator,
        })
    }

    /// Serves until the process closes, then finishes the requests that run, at most until it is hurried.
    ///
    /// # Errors
    /// A listener that broke; the other is stopped too.
    pub async fn run(self, life: &Lifecycle) -> io::Result<()> {
        let handles = [self.public.handle(), self.operator.handle()];
        let stopping = stop(&handles, life);
        let serving = async {
            let result = futures_util::future::try_join(self.public, self.operator).await;
            life.close();
            result
        };
        let (served, ()) = futures_util::future::join(serving, stopping).await;
        served.map(|_| ())
    }
}

/// The operator's listener is stopped with the public one: until then it tells that the hub is not ready.
async fn stop(handles: &[ServerHandle; 2], life: &Lifecycle) {
    life.closing().await;
    let graceful = async {
        for handle in handles {
            handle.stop(true).await;
        }
    };
    let hurried = async {
        life.hurried().await;
        for handle in handles {
            handle.stop(false).await;
        }
    };
    tokio::select! {
        () = graceful => {}
        () = hurried => {}
    }
}

fn listen(
    app: &Data<App>,
    doors: fn(&mut ServiceConfig),
    option: &'static str,
    address: SocketAddr,
    workers: usize,
) -> Result<(SocketAddr, Server), BindError> {
    let http = &app.settings.http;
    let state = app.clone();
    let bound = HttpServer::new(move || application(state.clone(), doors))
        .workers(workers)
        .max_connections(http.connections_max.div_ceil(workers).max(1))
        .client_request_timeout(Duration::from_secs(http.header_timeout_secs))
        .client_disconnect_timeout(Duration::from_secs(DISCONNECT_TIMEOUT_SECS))
        .keep_alive(Duration::from_secs(http.keep_alive_secs))
        .h1_write_buffer_size(WRITE_BUFFER_BYTES)
        .shutdown_timeout(http.shutdown_timeout_secs)
        // A frame must not wait until the other side acknowledges the one before it, which it may put off for 40 ms.
        .tcp_nodelay(true)
        .on_connect(give_up_on_stalled)
        .disable_signals()
        .bind(address)
        .map_err(|reason| BindError {
            option,
            address,
            reason,
        })?;
    let taken = bound.addrs().first().copied().unwrap_or(address);
    Ok((taken, bound.run()))
}

/// Has the system end a connection whose other side takes no bytes for a while: one that never reads would otherwise
/// keep its buffers for ever.
fn give_up_on_stalled(connection: &dyn Any, _data: &mut Extensions) {
    let Some(connection) = connection.downcast_ref::<TcpStream>() else {
        return;
    };
    if let Err(error) = set_tcp_user_timeout(connection, WRITE_STALL_MILLIS) {
        tracing::debug!(%error, "A connection has no limit for stalled writes");
    }
}

/// A listener that could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}; stop what holds the port, or choose another with --{option}")]
pub struct BindError {
    /// What names it on the command line.
    pub option: &'static str,
    /// The address that was asked for.
    pub address: SocketAddr,
    /// What the system said.
    pub reason: io::Error,
}

#[cfg(test)]
mod tests;
