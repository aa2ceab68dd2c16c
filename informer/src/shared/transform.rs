//! [`Transformed`]: a list-watch that changes each object before the informer caches it.
//!
//! It wraps the list-watch, so the queue, the store and the handlers see only changed objects, and
//! a deletion's final state is changed as well. Transforms nest: the first one given is the
//! innermost and runs first.
//!
//! client-go's `SetTransform` may be called twice for one object, because its queue passes a
//! tombstone through it again. Here each object that arrives is transformed once, before it is
//! queued.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use homeostat_core::user_code;

use crate::list_watch::{
    Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
    WatchStream,
};
use crate::object::{Object, ObjectKey};

/// Runs the author's function on each object that comes from the server.
///
/// Objects that do not fit their type pass unchanged: the function takes a decoded object.
///
/// It adds no task and no buffer: the function runs in the reflector's task, for each object of
/// each page and batch.
pub(super) struct Transformed<K: Object, F> {
    pub(super) list_watch: Arc<dyn ListWatch<K>>,
    pub(super) function: Arc<F>,
}

/// The error of an object whose transform panicked, for the log and the handlers.
const PANICKED: &str = "the transform of the informer panicked";

#[async_trait]
impl<K, F> ListWatch<K> for Transformed<K, F>
where
    K: Object + Clone,
    F: Fn(&mut K) + Send + Sync + 'static,
{
    fn target(&self) -> Arc<str> {
        self.list_watch.target()
    }

    fn is_ordered(&self) -> bool {
        self.list_watch.is_ordered()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let mut page = self.list_watch.list(request).await?;
        let target = self.target();
        for object in &mut page.items {
            change(&*self.function, object, &target);
        }
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let stream = self.list_watch.watch(request).await?;
        let (function, target) = (Arc::clone(&self.function), self.target());
        let changed = stream.map(move |batch| {
            let mut batch = batch?;
            for event in &mut batch {
                if let WatchEvent::Applied(object) | WatchEvent::Deleted(object) = event {
                    change(&*function, object, &target);
                }
            }
            Ok(batch)
        });
        Ok(changed.boxed())
    }
}

/// Runs the transform on an object of `target`. If the transform panics, the object becomes opaque:
/// it exists, but only its metadata is known.
///
/// The metadata that stays is the one at the panic. A function that changes the name or the uid of
/// an object makes it another object.
fn change<K: Object + Clone>(function: &impl Fn(&mut K), decoded: &mut Decoded<K>, target: &str) {
    let Decoded::Fits(object) = decoded else { return };
    // The object was just decoded: this is the only reference, so `make_mut` copies nothing.
    let changed = user_code("transform", || function(Arc::make_mut(object)));
    if changed.is_err() {
        let metadata = Arc::new(object.metadata().clone());
        let key = ObjectKey::<K::Kind>::from_metadata(&metadata);
        tracing::error!(resource = target, %key, "{PANICKED}; only its metadata is cached");
        *decoded = Decoded::Opaque { metadata, error: PANICKED.into() };
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use k8s_openapi::api::core::v1::Pod;
    use parking_lot::Mutex;
    use tracing::field::{Field, Visit};
    use tracing::span;
    use tracing::subscriber::with_default;

    use super::*;

    /// Keeps the fields of each log line.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Fields(Vec<String>);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            self.0.push(format!("{field}={value:?}"));
        }
    }

    impl tracing::Subscriber for Lines {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut fields = Fields(Vec::new());
            event.record(&mut fields);
            self.0.lock().push(fields.0.join(" "));
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn log_line_of_a_panic_names_the_object() {
        let mut pod = Pod::default();
        pod.metadata.namespace = Some("shop".into());
        pod.metadata.name = Some("web".into());
        let mut decoded = Decoded::Fits(Arc::new(pod));
        let lines = Lines::default();
        with_default(lines.clone(), || change(&|_| panic!("no"), &mut decoded, "all pods"));
        assert!(matches!(decoded, Decoded::Opaque { .. }));
        let lines = lines.0.lock();
        let names = |line: &&String| line.contains("shop/web") && line.contains("all pods");
        assert_eq!(lines.iter().filter(names).count(), 1, "{lines:?}");
    }
}
