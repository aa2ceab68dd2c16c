//! The keys of a pass, made before its clock starts.

use std::sync::Arc;

use super::{Key, texts};

/// The keys of all passes, and the time at which a pass clones them.
#[derive(Clone, Debug)]
pub struct Keys<K> {
    keys: Arc<[K]>,
    clone_inside: bool,
}

/// The keys of one pass, for the queue to own.
#[derive(Debug)]
pub enum Supply<K> {
    /// Cloned before the clock starts, as Go's strings are.
    Made(std::vec::IntoIter<K>),
    /// Cloned while the clock runs.
    Cloned(Arc<[K]>, usize),
}

// === impl Keys ===

impl<K: Key> Keys<K> {
    /// Makes `count` keys. With `clone_inside` a pass clones each key in its measured time, else
    /// before it.
    pub fn new(count: usize, clone_inside: bool) -> Self {
        Self { keys: texts(count).map(|text| K::from_text(&text)).collect(), clone_inside }
    }

    /// Returns the keys for one pass.
    pub fn supply(&self) -> Supply<K> {
        if self.clone_inside {
            Supply::Cloned(Arc::clone(&self.keys), 0)
        } else {
            let made: Vec<K> = self.keys.to_vec();
            Supply::Made(made.into_iter())
        }
    }

    /// Returns all keys in the order in which a pass adds them.
    pub fn as_slice(&self) -> &[K] {
        &self.keys
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

// === impl Supply ===

impl<K: Clone> Iterator for Supply<K> {
    type Item = K;

    #[inline]
    fn next(&mut self) -> Option<K> {
        match self {
            Self::Made(keys) => keys.next(),
            Self::Cloned(keys, next) => {
                let key = keys.get(*next)?.clone();
                *next += 1;
                Some(key)
            }
        }
    }
}
