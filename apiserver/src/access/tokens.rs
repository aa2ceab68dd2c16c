//! The bearer tokens of users that the owner of the server names.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use homeostat_core::Uuid;

use super::User;

/// The number of random bytes of a token.
const SECRET_BYTES: usize = 32;

/// The bearer tokens of users. They never expire.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    users: HashMap<String, Arc<User>>,
}

// === impl Tokens ===

impl Tokens {
    /// Accepts a token as that of a user.
    pub(crate) fn accept(&mut self, token: String, user: User) {
        self.users.insert(token, Arc::new(user));
    }

    /// Issues a token for a user.
    pub(crate) fn issue(&mut self, user: User) -> String {
        let token = secret();
        self.accept(token.clone(), user);
        token
    }

    /// Returns the user of a token.
    pub(crate) fn user(&self, token: &str) -> Option<Arc<User>> {
        self.users.get(token).cloned()
    }
}

/// Returns a text that cannot be guessed. It has no part in the server's seed: a seed is public.
fn secret() -> String {
    URL_SAFE_NO_PAD.encode(random_bytes::<SECRET_BYTES>())
}

fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    bytes
}

/// Returns a uid that cannot be guessed either.
pub(super) fn random_uid() -> String {
    Uuid::from_random(u128::from_be_bytes(random_bytes())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_belong_to_their_users() {
        let mut tokens = Tokens::default();
        let (a, b) = (tokens.issue(User::new("a")), tokens.issue(User::new("b")));
        assert_ne!(a, b);
        assert_eq!(tokens.user(&b).unwrap().name, "b");
        assert!(tokens.user("").is_none());
    }
}
