//! Deltas in the order of the server, across all objects.

use std::collections::VecDeque;

use crate::{delta::Delta, object::Object};

/// A queue that drops nothing and merges nothing.
pub(crate) struct InOrder<K: Object> {
    deltas: VecDeque<Delta<K>>,
}

// === impl InOrder ===

impl<K: Object> InOrder<K> {
    pub(crate) fn new() -> Self {
        Self { deltas: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, deltas: impl IntoIterator<Item = Delta<K>>) {
        self.deltas.extend(deltas);
    }

    /// The next deltas, at most `limit`. A whole state comes alone.
    pub(crate) fn pop(&mut self, limit: usize) -> Vec<Delta<K>> {
        let small = |delta: &Delta<K>| !matches!(delta, Delta::Replaced { .. });
        let run = self.deltas.iter().take(limit).take_while(|delta| small(delta)).count();
        let count = if run == 0 { self.deltas.len().min(1) } else { run };
        self.deltas.drain(..count).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.deltas.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;

    fn bookmark(version: &str) -> Delta<Pod> {
        Delta::Bookmark(version.into())
    }

    fn replaced(version: &str) -> Delta<Pod> {
        Delta::Replaced { objects: Vec::new(), resource_version: version.into() }
    }

    fn pop(queue: &mut InOrder<Pod>, limit: usize) -> Vec<String> {
        let version = |delta: Delta<Pod>| match delta {
            Delta::Bookmark(version) => version.to_string(),
            Delta::Replaced { resource_version, .. } => format!("all {resource_version}"),
            Delta::Applied(_) | Delta::Deleted(_) => unreachable!(),
        };
        queue.pop(limit).into_iter().map(version).collect()
    }

    #[test]
    fn whole_state_comes_alone_and_in_its_place() {
        let mut queue = InOrder::new();
        queue.push([bookmark("1"), bookmark("2"), replaced("3"), replaced("4"), bookmark("5")]);
        assert_eq!(pop(&mut queue, 10), ["1", "2"]);
        assert_eq!(pop(&mut queue, 10), ["all 3"]);
        assert_eq!(pop(&mut queue, 10), ["all 4"]);
        assert_eq!(pop(&mut queue, 10), ["5"]);
        assert_eq!(pop(&mut queue, 10), [""; 0]);
    }

    #[test]
    fn batch_is_not_longer_than_asked() {
        let mut queue = InOrder::new();
        queue.push((1..=5).map(|version| bookmark(&version.to_string())));
        assert_eq!(pop(&mut queue, 2), ["1", "2"]);
        assert_eq!(pop(&mut queue, 2), ["3", "4"]);
        assert_eq!((pop(&mut queue, 2), queue.len()), (vec!["5".to_owned()], 0));
    }
}
