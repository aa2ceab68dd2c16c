//! The mutex and the notification of the informer's own waits: `parking_lot`'s and tokio's.
//!
//! In unit tests each of their calls is a step of a schedule as well. The modules named
//! `interleavings` run the waits of the queue, of a handler and of an event stream in every order
//! of these steps. Outside of such a model the wrappers do nothing else.

#[cfg(test)]
mod explore;

#[cfg(not(test))]
pub(crate) use parking_lot::Mutex;
#[cfg(not(test))]
pub(crate) use tokio::sync::Notify;

#[cfg(test)]
pub(crate) use self::explore::{block_on, explore};
#[cfg(test)]
pub(crate) use self::steps::{Mutex, Notify};

#[cfg(test)]
mod steps {
    use std::ops::{Deref, DerefMut};

    use super::explore::step;

    /// A mutex. Its lock is a step, and so is the release.
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    /// The lock of a [`Mutex`]; `None` once it is released.
    pub(crate) struct MutexGuard<'a, T>(Option<parking_lot::MutexGuard<'a, T>>);

    /// A notification of which each call is a step.
    pub(crate) struct Notify(tokio::sync::Notify);

    // === impl Mutex ===

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            step();
            MutexGuard(Some(self.0.lock()))
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("it is released by its drop")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("it is released by its drop")
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            drop(self.0.take());
            step();
        }
    }

    // === impl Notify ===

    impl Notify {
        pub(crate) fn new() -> Self {
            Self(tokio::sync::Notify::new())
        }

        pub(crate) fn notify_one(&self) {
            step();
            self.0.notify_one();
        }

        pub(crate) async fn notified(&self) {
            step();
            self.0.notified().await;
        }
    }
}
