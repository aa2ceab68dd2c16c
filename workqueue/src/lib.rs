//! A de-duplicating async work queue.
