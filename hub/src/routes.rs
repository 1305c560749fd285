//! Every endpoint of both listeners, in one list: the router is built from it, and a test compares it with the
//! OpenAPI document. One endpoint per file under `routes/<resource>/<verb>.rs`.

use std::rc::Rc;

use actix_web::dev::Handler;
use actix_web::http::Method;
use actix_web::{FromRequest, Resource, Responder, Route, guard, web};

use crate::error::ApiError;

pub mod admin;
pub mod agents;
pub mod auth;
pub mod did;
pub mod discovery;
pub mod docs;
pub mod federation;
pub mod health;
pub mod inbox;
pub mod ingest;
pub mod listings;
pub mod market;
pub mod messages;
pub mod metrics;
pub mod resolve;
pub mod search;
pub mod search_page;
pub mod socket;

/// The template of the route that a request matched, for logs, counters and [`crate::extract::raw_segment`].
#[derive(Clone, Copy, Debug)]
pub struct Template(pub &'static str);

/// A path with the methods it answers to.
#[derive(Debug)]
pub struct Endpoint {
    path: &'static str,
    methods: Vec<&'static str>,
    routes: Vec<ReadyRoute>,
}

struct ReadyRoute(Route);

impl std::fmt::Debug for ReadyRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Route")
    }
}

impl Endpoint {
    /// An endpoint at a path template such as `/api/v1/agents/{name}/history`, without a slash at its end.
    pub fn at(path: &'static str) -> Self {
        Self {
            path,
            methods: Vec::new(),
            routes: Vec::new(),
        }
    }

    /// Answers `GET`, and `HEAD` with the same headers.
    #[must_use]
    pub fn get<F, Args>(mut self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.extend(["GET", "HEAD"]);
        let route = web::route()
            .guard(guard::Any(guard::Get()).or(guard::Head()))
            .to(handler);
        self.routes.push(ReadyRoute(route));
        self
    }

    /// Answers `GET` only: a stream or an upgrade has no `HEAD`.
    #[must_use]
    pub fn stream<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on("GET", Method::GET, handler)
    }

    /// Answers `POST`.
    #[must_use]
    pub fn post<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on("POST", Method::POST, handler)
    }

    /// Answers `PUT`.
    #[must_use]
    pub fn put<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on("PUT", Method::PUT, handler)
    }

    /// Answers `PATCH`.
    #[must_use]
    pub fn patch<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on("PATCH", Method::PATCH, handler)
    }

    /// Answers `DELETE`.
    #[must_use]
    pub fn delete<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on("DELETE", Method::DELETE, handler)
    }

    fn on<F, Args>(mut self, name: &'static str, method: Method, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.methods.push(name);
        self.routes.push(ReadyRoute(web::method(method).to(handler)));
        self
    }

    /// The path template.
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// The methods, as `Allow` lists them.
    pub fn methods(&self) -> &[&'static str] {
        &self.methods
    }

    /// The endpoint for the router; other methods get 405 with `Allow`.
    pub fn into_resource(self) -> Resource {
        let allow: Rc<str> = self.methods.join(", ").into();
        let mut resource = web::resource(self.path).app_data(Template(self.path));
        for ReadyRoute(route) in self.routes {
            resource = resource.route(route);
        }
        resource.default_service(web::to(move || {
            let allow = Rc::clone(&allow);
            async move { Err::<&'static str, _>(ApiError::method_not_allowed(&allow)) }
        }))
    }
}

/// The endpoints of the public listener; the busiest first, as the router tries them in order.
pub fn public() -> Vec<Endpoint> {
    [
        messages::endpoints(),
        federation::endpoints(),
        resolve::endpoints(),
        inbox::endpoints(),
        socket::endpoints(),
        auth::endpoints(),
        agents::endpoints(),
        did::endpoints(),
        discovery::endpoints(),
        search::endpoints(),
        search_page::endpoints(),
        listings::endpoints(),
        ingest::endpoints(),
        market::endpoints(),
        health::endpoints(),
        docs::endpoints(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The endpoints of the operator's listener.
pub fn operator() -> Vec<Endpoint> {
    [health::endpoints(), metrics::endpoints(), admin::endpoints()]
        .into_iter()
        .flatten()
        .collect()
}
