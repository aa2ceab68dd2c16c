//! The items that a drain returns.

/// The items that were not done when [`Queue::drain`](crate::Queue::drain) ended; each list
/// contains an item at most once.
///
/// An item that is delayed and also queued or held is in two lists.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_workqueue::Queue;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = Queue::new();
/// queue.add("default/web");
/// queue.add_after("default/slow", Duration::from_secs(60));
/// let unfinished = queue.drain(Duration::from_secs(1)).await; // no worker runs
/// assert_eq!(unfinished.len(), 2);
/// let items: Vec<_> = unfinished.into_iter().collect();
/// assert_eq!(items, ["default/web", "default/slow"]);
/// # }
/// ```
#[must_use = "log the items that are not done"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished<T> {
    /// The items that workers still hold, in no particular order. The workers may still finish
    /// them.
    pub held: Vec<T>,
    /// The items that no worker has taken, in hand-out order.
    pub queued: Vec<T>,
    /// The items whose delay had not ended, earliest deadline first.
    pub delayed: Vec<T>,
}

// === impl Unfinished ===

impl<T> Unfinished<T> {
    /// Returns true if all items were done.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items that were not done.
    pub fn len(&self) -> usize {
        self.held.len() + self.queued.len() + self.delayed.len()
    }
}

/// Iterates over all items: held, then queued, then delayed.
impl<T> IntoIterator for Unfinished<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        let mut items = self.held;
        items.extend(self.queued);
        items.extend(self.delayed);
        items.into_iter()
    }
}
