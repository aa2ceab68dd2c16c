//! Bearer tokens and their users.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use super::User;

/// The number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The valid bearer tokens of one server.
///
/// Each issued token is kept until it expires; the next issue removes those that have expired.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    grants: HashMap<String, Grant>,
}

/// The service account that a token was issued for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The servers that accept the token.
    pub(crate) audiences: Vec<String>,
}

#[derive(Debug)]
enum Grant {
    /// A user that the owner of the server named. It never expires.
    User(Arc<User>),
    Account {
        account: Account,
        expires: Timestamp,
    },
}

/// The owner of a valid token.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    User(Arc<User>),
    /// The account may have been deleted since.
    Account(Account),
}

// === impl Tokens ===

impl Tokens {
    /// Issues a token for a user.
    pub(crate) fn issue(&mut self, user: User) -> String {
        let token = new_token();
        self.grants.insert(token.clone(), Grant::User(Arc::new(user)));
        token
    }

    /// Issues a token for a service account.
    pub(crate) fn issue_for(
        &mut self,
        account: Account,
        now: Timestamp,
        expires: Timestamp,
    ) -> String {
        self.grants.retain(|_, grant| grant.is_valid(now));
        let token = new_token();
        self.grants.insert(token.clone(), Grant::Account { account, expires });
        token
    }

    /// Returns the owner of a token, if the token is valid.
    pub(crate) fn owner(&self, token: &str, now: Timestamp) -> Option<Owner> {
        let grant = self.grants.get(token).filter(|grant| grant.is_valid(now))?;
        Some(match grant {
            Grant::User(user) => Owner::User(Arc::clone(user)),
            Grant::Account { account, .. } => Owner::Account(account.clone()),
        })
    }
}

/// Returns a token that cannot be guessed. It has no part in the server's seed: a seed is public.
fn new_token() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    URL_SAFE_NO_PAD.encode(bytes)
}

// === impl Grant ===

impl Grant {
    fn is_valid(&self, now: Timestamp) -> bool {
        match self {
            Self::User(_) => true,
            Self::Account { expires, .. } => now < *expires,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn token_of_an_account_expires_and_is_forgotten() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let account = Account {
            namespace: "a".into(),
            name: "b".into(),
            uid: "c".into(),
            audiences: Vec::new(),
        };
        let mut tokens = Tokens::default();
        let later = now + SignedDuration::from_secs(600);
        let token = tokens.issue_for(account.clone(), now, later);
        let owner = |tokens: &Tokens, now| tokens.owner(&token, now);
        assert!(matches!(owner(&tokens, now), Some(Owner::Account(known)) if known == account));
        assert!(owner(&tokens, later).is_none());
        tokens.issue_for(account, later, later + SignedDuration::from_secs(600));
        assert_eq!(tokens.grants.len(), 1);
    }

    #[test]
    fn tokens_differ_and_belong_to_their_users() {
        let mut tokens = Tokens::default();
        let (a, b) = (tokens.issue(User::new("a")), tokens.issue(User::new("b")));
        assert_ne!(a, b);
        let now = Timestamp::UNIX_EPOCH;
        assert!(matches!(tokens.owner(&b, now), Some(Owner::User(user)) if user.name == "b"));
        assert!(tokens.owner("", now).is_none());
    }
}
