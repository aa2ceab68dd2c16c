//! Bearer tokens and their users.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::User;

/// The number of random bytes of a token.
const SECRET_BYTES: usize = 32;

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
    /// The object without which the token is not valid.
    pub(crate) bound: Option<Bound>,
}

/// The object that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The resource, in the core group: `pods`, `secrets` or `nodes`.
    pub(crate) resource: &'static str,
    pub(crate) object: Named,
    /// The node of a pod. Its uid is empty if there is no such node.
    pub(crate) node: Option<Named>,
}

/// The name and the uid of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Named {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// The time in which a token is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
    /// The time from which its use causes warnings: that of the request, if the server grants more.
    pub(crate) warns: Option<Timestamp>,
}

#[derive(Debug)]
enum Grant {
    /// A user that the owner of the server named. It never expires.
    User(Arc<User>),
    Account {
        account: Arc<Account>,
        /// The identifier of the token, which its claims have.
        id: String,
        expires: Timestamp,
    },
}

/// The owner of a valid token.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    User(Arc<User>),
    /// The account, or the object that the token is bound to, may have been deleted since.
    Account {
        account: Arc<Account>,
        id: String,
    },
}

// === impl Tokens ===

impl Tokens {
    /// Accepts a token as that of a user.
    pub(crate) fn accept(&mut self, token: String, user: User) {
        self.grants.insert(token, Grant::User(Arc::new(user)));
    }

    /// Issues a token for a user.
    pub(crate) fn issue(&mut self, user: User) -> String {
        let token = secret();
        self.accept(token.clone(), user);
        token
    }

    /// Issues a token for a service account.
    pub(crate) fn issue_for(
        &mut self,
        issuer: &str,
        account: Account,
        validity: Validity,
    ) -> String {
        self.grants.retain(|_, grant| grant.is_valid(validity.issued));
        let id = random_uuid();
        let token = web_token(&claims(issuer, &account, &id, validity));
        let expires = validity.expires;
        let account = Arc::new(account);
        self.grants.insert(token.clone(), Grant::Account { account, id, expires });
        token
    }

    /// Returns the owner of a token, if the token is valid.
    pub(crate) fn owner(&self, token: &str, now: Timestamp) -> Option<Owner> {
        let grant = self.grants.get(token).filter(|grant| grant.is_valid(now))?;
        Some(match grant {
            Grant::User(user) => Owner::User(Arc::clone(user)),
            Grant::Account { account, id, .. } => {
                Owner::Account { account: Arc::clone(account), id: id.clone() }
            }
        })
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

/// Returns a random uid (version 4).
fn random_uuid() -> String {
    let mut bytes = random_bytes::<16>();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    format!("{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
}

/// Returns a JSON Web Token that every program can read.
///
/// In the place of the signature stands a secret: the server knows the tokens that it issued, so
/// that no key is needed to check them.
fn web_token(claims: &Value) -> String {
    let header = json!({"alg": "HS256", "kid": "homeostat"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{}", part(&header), part(claims), secret())
}

/// Returns the claims of a token.
fn claims(issuer: &str, account: &Account, id: &str, validity: Validity) -> Value {
    let Account { namespace, name, uid, audiences, bound } = account;
    let mut of_cluster = json!({
        "namespace": namespace, "serviceaccount": {"name": name, "uid": uid},
    });
    if let Some(Bound { resource, object, node }) = bound {
        // The resource without its plural `s`.
        of_cluster[&resource[..resource.len() - 1]] = json!(object);
        if let Some(node) = node {
            of_cluster["node"] = json!(node);
        }
    }
    if let Some(warns) = validity.warns {
        of_cluster["warnafter"] = json!(warns.as_second());
    }
    json!({
        "aud": audiences,
        "exp": validity.expires.as_second(),
        "iat": validity.issued.as_second(),
        "iss": issuer,
        "jti": id,
        "kubernetes.io": of_cluster,
        "nbf": validity.issued.as_second(),
        "sub": User::service_account(namespace, name).name,
    })
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

    fn account() -> Account {
        let node = Some(Named { name: "n".into(), uid: String::new() });
        let object = Named { name: "p".into(), uid: "u".into() };
        Account {
            namespace: "a".into(),
            name: "b".into(),
            uid: "c".into(),
            audiences: vec!["d".into()],
            bound: Some(Bound { resource: "pods", object, node }),
        }
    }

    fn validity(issued: Timestamp) -> Validity {
        let expires = issued + SignedDuration::from_secs(600);
        Validity { issued, expires, warns: None }
    }

    #[test]
    fn token_of_an_account_expires_and_is_forgotten() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut tokens = Tokens::default();
        let valid = validity(now);
        let token = tokens.issue_for("i", account(), valid);
        let owner = |tokens: &Tokens, now| tokens.owner(&token, now);
        let known = owner(&tokens, now);
        assert!(
            matches!(known, Some(Owner::Account { account: known, .. }) if *known == account())
        );
        assert!(owner(&tokens, valid.expires).is_none());
        tokens.issue_for("i", account(), validity(valid.expires));
        assert_eq!(tokens.grants.len(), 1);
    }

    #[test]
    fn token_of_an_account_shows_its_claims() {
        let now = Timestamp::UNIX_EPOCH;
        let mut tokens = Tokens::default();
        let warns = Some(now + SignedDuration::from_secs(60));
        let token = tokens.issue_for("i", account(), Validity { warns, ..validity(now) });
        let parts: Vec<&str> = token.split('.').collect();
        let [_, claims, signature] = parts[..] else { panic!("three parts: {token}") };
        let claims: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
        let Some(Owner::Account { id, .. }) = tokens.owner(&token, now) else { panic!("{token}") };
        assert_eq!(
            claims,
            json!({
                "aud": ["d"], "exp": 600, "iat": 0, "nbf": 0, "iss": "i", "jti": id,
                "sub": "system:serviceaccount:a:b",
                "kubernetes.io": {
                    "namespace": "a", "serviceaccount": {"name": "b", "uid": "c"},
                    "pod": {"name": "p", "uid": "u"}, "node": {"name": "n"}, "warnafter": 60,
                },
            })
        );
        // A token with another signature is not valid.
        let forged = token.replace(signature, &secret());
        assert!(tokens.owner(&forged, now).is_none());
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
