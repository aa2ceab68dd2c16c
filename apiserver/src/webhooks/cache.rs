//! The webhooks of all configurations. A configuration is read again only if it has changed.

use std::sync::Arc;

use super::webhook::{Webhook, Webhooks};
use crate::read_objects::ReadObjects;
use crate::storage::Objects;

/// The configurations of the last request, read.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    mutating: ReadObjects<Vec<Arc<Webhook>>>,
    validating: ReadObjects<Vec<Arc<Webhook>>>,
    current: Arc<Webhooks>,
}

// === impl Cache ===

impl Cache {
    /// Returns the webhooks that are configured now; `None` if there are none.
    pub(crate) fn follow(
        &mut self,
        mutating: &Objects,
        validating: &Objects,
    ) -> Option<Arc<Webhooks>> {
        let is_known = self.mutating.is(mutating) && self.validating.is(validating);
        if !is_known {
            self.mutating.follow(mutating, Webhook::read_all);
            self.validating.follow(validating, Webhook::read_all);
            let all = |kept: &ReadObjects<Vec<Arc<Webhook>>>| {
                kept.all().iter().flat_map(|webhooks| webhooks.iter().cloned()).collect()
            };
            let (mutating, validating) = (all(&self.mutating), all(&self.validating));
            self.current = Arc::new(Webhooks { mutating, validating });
        }
        (!self.current.is_empty()).then(|| Arc::clone(&self.current))
    }
}
