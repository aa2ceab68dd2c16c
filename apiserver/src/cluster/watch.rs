//! [`Watch`]: the events of one watch.

use std::pin::Pin;

use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use http::{HeaderValue, header};
use kube_client::{Api, Error, Result};
use kube_core::params::WatchParams;
use kube_core::{Request, Resource, WatchEvent};
use serde::de::DeserializeOwned;

/// The maximal length of an event: ten times that of the largest object that servers store.
const MAX_LINE: u64 = 16 << 20;

/// The part of each object that the server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Metadata,
}

/// A watch that is open.
///
/// `kube_client::Api::watch` decodes all of an object. This one finds the end of what a type leaves
/// out without reading it: more than half of a pod is `managedFields`.
pub(super) struct Watch {
    body: Pin<Box<dyn AsyncBufRead + Send>>,
    /// The line that is being read.
    line: Vec<u8>,
}

// === impl Watch ===

impl Watch {
    /// Opens a watch of a part of the objects of `api` after this version.
    pub(super) async fn open<K>(api: &Api<K>, part: Part, version: &str) -> Result<Self>
    where
        K: Clone + Resource,
    {
        let (request, params) = (Request::new(api.resource_url()), WatchParams::default());
        let request = match part {
            Part::Whole => request.watch(&params, version),
            Part::Metadata => request.watch_metadata(&params, version),
        };
        let mut request = request.map_err(Error::BuildRequest)?;
        // Each event would be a gzip member of its own, of which the client reads only the first.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(header::ACCEPT_ENCODING, identity);
        request.extensions_mut().insert("watch");
        let body = api.clone().into_client().request_stream(request).await?;
        Ok(Self { body: Box::pin(body), line: Vec::new() })
    }

    /// Returns the next event, or `None` if the server has ended the watch.
    ///
    /// # Cancel safety
    ///
    /// No event is lost.
    pub(super) async fn next<K: DeserializeOwned>(&mut self) -> Result<Option<WatchEvent<K>>> {
        let left = MAX_LINE.saturating_sub(self.line.len() as u64);
        let mut body = self.body.as_mut().take(left);
        body.read_until(b'\n', &mut self.line).await.map_err(Error::ReadEvents)?;
        if self.line.last() != Some(&b'\n') {
            let is_too_long = self.line.len() as u64 >= MAX_LINE;
            return if is_too_long {
                Err(Error::LinesCodecMaxLineLengthExceeded)
            } else {
                Ok(None)
            };
        }
        let event = decode(&self.line);
        self.line.clear();
        event.map(Some)
    }
}

/// Decodes the line of an event.
fn decode<K: DeserializeOwned>(line: &[u8]) -> Result<WatchEvent<K>> {
    match std::str::from_utf8(line) {
        Ok(text) => homeostat_json::from_str(text).map_err(Error::SerdeError),
        // Its error says that the text is no UTF-8, and where.
        Err(_) => serde_json::from_slice(line).map_err(Error::SerdeError),
    }
}
