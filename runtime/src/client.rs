//! A client for controllers: it repeats no write whose outcome is unknown, limits its own request
//! rate, and shares one connection.
//!
//! The client that [`kube_client`] builds by default repeats *every* request that is answered with
//! 429, 503 or 504, up to fifteen times. A pod create with `generateName` that the server carries
//! out and answers with 504 then creates two pods. client-go repeats no such request, and limits
//! the rate of requests. This module gives the same [`Client`](kube_client::Client) type
//! client-go's behaviour:
//!
//! - **Rate**: at most `qps` requests start per second, after an initial `burst`. Requests are
//!   admitted first-in first-out. Watches count, as in client-go.
//! - **In flight**: at most `in_flight` requests await their answer. Watches do not count, because
//!   they stay open.
//! - **Retries**: a read whose connection broke is sent again, up to three times; so is any request
//!   that the server has not processed since it closes the connection. A request is sent again
//!   if the server answers 429 or 503 with `Retry-After`, up to ten times and 30 s of waiting in
//!   total. Another write without an answer is returned to the caller as an error. A failed watch
//!   is returned to the informer, which has its own back-off.
//! - **Timeouts**: a request fails if its answer, or the next part of it, does not arrive within
//!   30 s; a watch, if the server does not accept it within 10 s. Connecting takes at most 10 s.
//!   The time in the client's own queue does not count.
//! - **Transport**: HTTP/2 under TLS if the server supports it, so that 500 concurrent deletes
//!   share one connection, and HTTP/1.1 otherwise. A dead connection is detected within 25 s by
//!   unanswered pings, and replaced.
//! - **Credentials**: token files, client certificates and the file of the certificate authorities
//!   are read again when they change. A credential plugin runs once, in its own process, and again
//!   before its credentials expire. A request that is answered with 401 is sent again with
//!   reloaded credentials.
//! - **Proxies**: the kubeconfig's `proxy-url`, else `HTTPS_PROXY` and `NO_PROXY`. Only `http://`
//!   proxies work; another is an error when the client is built. `https` passes the proxy by
//!   `CONNECT`; a request to an `http` server is sent to the proxy with its complete URL, as by Go.
//!
//! # Examples
//!
//! ```no_run
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! let client = homeostat::client::builder().qps(50.0).burst(100).infer().await?.build();
//! # Ok(())
//! # }
//! ```

mod builder;
mod chain;
mod connect_timeout;
mod connections;
mod credentials;
mod error;
mod exec;
mod http2;
mod http2_body;
mod http2_socket;
mod http2_usage;
#[cfg(feature = "rustls-tls")]
#[path = "client/identity/tls.rs"]
mod identity;
#[cfg(not(feature = "rustls-tls"))]
#[path = "client/identity/plain.rs"]
mod identity;
mod kubeconfig;
mod limiter;
mod material;
mod measured;
mod metadata_only;
mod pool;
mod proxy;
mod rate_limited_transport;
mod requests;
mod retry;
mod tcp_stream;
mod throttling;
mod timeout;
mod transport;

pub use self::builder::{ClientBuilder, NoServer, Server};
pub use self::chain::{describe_chain, describe_error};
pub use self::error::{ClientError, TransportError};
pub use self::metadata_only::metadata_only;
pub use self::transport::{Transport, TransportBody};

/// Returns a builder with the default limits: 20 requests per second after a burst of 30, and 128
/// requests in flight.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let builder = homeostat::client::builder().user_agent("shop-operator/1.2");
/// let client = builder.infer().await?.build();
/// # Ok(())
/// # }
/// ```
pub fn builder() -> ClientBuilder<NoServer> {
    ClientBuilder::new()
}

#[cfg(test)]
mod tests;
