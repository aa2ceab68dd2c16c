//! Certificates with their keys.

use std::fmt;

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret.
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
