//! [`Transformed`]: a list-watch whose objects are changed before anybody sees them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use async_trait::async_trait;
use futures::StreamExt;

use crate::{
    list_watch::{
        Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
        WatchStream,
    },
    object::Object,
};

/// Runs the author's function on each object that comes from the server.
pub(super) struct Transformed<K: Object, F> {
    pub(super) list_watch: Arc<dyn ListWatch<K>>,
    pub(super) function: Arc<F>,
}

/// What the log and handlers say of an object that could not be changed.
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

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let mut page = self.list_watch.list(request).await?;
        for object in &mut page.items {
            change(&*self.function, object);
        }
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let stream = self.list_watch.watch(request).await?;
        let function = Arc::clone(&self.function);
        let changed = stream.map(move |batch| {
            let mut batch = batch?;
            for event in &mut batch {
                if let WatchEvent::Applied(object) | WatchEvent::Deleted(object) = event {
                    change(&*function, object);
                }
            }
            Ok(batch)
        });
        Ok(changed.boxed())
    }
}

/// An object whose change panics is one that does not fit: it is there, and what it would be is not known.
fn change<K: Object + Clone>(function: &impl Fn(&mut K), decoded: &mut Decoded<K>) {
    let Decoded::Fits(object) = decoded else { return };
    // Just decoded, so nobody else has it, and nothing is copied.
    let changed = catch_unwind(AssertUnwindSafe(|| function(Arc::make_mut(object))));
    if changed.is_err() {
        let metadata = Arc::new(object.metadata().clone());
        tracing::error!("{PANICKED}");
        *decoded = Decoded::Opaque { metadata, error: PANICKED.into() };
    }
}
