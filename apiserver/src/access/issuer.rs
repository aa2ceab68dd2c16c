//! The issuer of the tokens of service accounts: its names, its keys, and what it accepts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

use super::tokens::random_uuid;
use super::web_token::{Claims, Holder, SecretClaims, Unverified};
use super::{PublicKey, SigningKey, User};

/// The issuer of tokens by default, and their audience.
const ISSUER: &str = "https://kubernetes.default.svc";

/// The issuer that controllers write into the tokens of secrets.
const ISSUER_OF_SECRETS: &str = "kubernetes/serviceaccount";

/// The most tokens whose signatures are remembered: more than the accounts of most tests. Beyond
/// that all are forgotten, and checked again.
const VERIFIED: usize = 1000;

/// The path of the document with the public keys.
const KEY_SET: &str = "/openid/v1/jwks";

/// The settings of the tokens of service accounts.
#[derive(Debug, Default)]
pub(crate) struct TokenSettings {
    /// The issuers: the first one issues, tokens of all are accepted. Without one, the default.
    pub(crate) issuers: Vec<String>,
    /// The audiences of the server itself; without any, the issuers.
    pub(crate) audiences: Vec<String>,
    /// The key that signs; without one, the server makes it.
    pub(crate) signing_key: Option<SigningKey>,
    /// The keys whose tokens are accepted; without any, that of `signing_key`.
    pub(crate) keys: Vec<PublicKey>,
    /// The longest lifetime that a token gets.
    pub(crate) longest_lifetime: Option<Duration>,
    /// True if kubelets get the lifetime that they ask for.
    pub(crate) refuses_extension: bool,
    /// The address of the document with the public keys, if the server does not know it.
    pub(crate) key_set_uri: Option<String>,
}

/// The issuer of the tokens of service accounts.
#[derive(Debug)]
pub(crate) struct Issuer {
    settings: TokenSettings,
    /// The key that the server makes, once it needs one.
    own_key: OnceLock<SigningKey>,
    /// The tokens whose signatures are right.
    verified: Mutex<HashMap<String, Verified>>,
}

/// What a token says whose signature is right.
#[derive(Debug, Clone)]
pub(crate) enum Verified {
    /// The token of a request for one.
    Requested(Arc<Claims>),
    /// The token of a secret.
    OfSecret(Arc<SecretClaims>),
}

/// The time in which a token is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

/// The document that describes the issuer. The members have the real server's order.
#[derive(Serialize)]
struct Configuration<'a> {
    issuer: &'a str,
    jwks_uri: &'a str,
    response_types_supported: [&'static str; 1],
    subject_types_supported: [&'static str; 1],
    id_token_signing_alg_values_supported: Vec<&'static str>,
}

// === impl Issuer ===

impl Issuer {
    pub(super) fn new(mut settings: TokenSettings) -> Self {
        if settings.issuers.is_empty() {
            settings.issuers.push(ISSUER.to_owned());
        }
        if settings.audiences.is_empty() {
            settings.audiences.clone_from(&settings.issuers);
        }
        Self { settings, own_key: OnceLock::new(), verified: Mutex::default() }
    }

    pub(crate) fn settings(&self) -> &TokenSettings {
        &self.settings
    }

    fn name(&self) -> &str {
        &self.settings.issuers[0]
    }

    /// Returns whether a token for this audience is one for the server itself.
    pub(crate) fn is_audience(&self, audience: &String) -> bool {
        self.settings.audiences.contains(audience)
    }

    fn signing_key(&self) -> &SigningKey {
        let own = || self.own_key.get_or_init(SigningKey::generate);
        self.settings.signing_key.as_ref().unwrap_or_else(own)
    }

    /// Returns the keys whose tokens are accepted. As on the real server, given keys are all: that
    /// of the server itself has to be among them, unless the server made it.
    fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        let TokenSettings { signing_key, keys, .. } = &self.settings;
        let own = (signing_key.is_none() || keys.is_empty()).then(|| self.signing_key().public());
        own.into_iter().chain(keys)
    }

    /// Issues a token.
    pub(crate) fn issue(
        &self,
        holder: Holder,
        audiences: Vec<String>,
        validity: Validity,
    ) -> String {
        let issued = Some(validity.issued.as_second());
        let claims = Claims {
            audiences,
            expires: Some(validity.expires.as_second()),
            issued,
            issuer: self.name().to_owned(),
            id: random_uuid(),
            starts: issued,
            subject: User::service_account(&holder.namespace, &holder.account.name).name,
            holder,
        };
        claims.sign(self.signing_key())
    }

    /// Returns what a token says; `None` if it is of another issuer, or no such token at all.
    ///
    /// # Errors
    ///
    /// Returns upstream's text if the signature is not that of an accepted key.
    pub(crate) fn read(&self, token: &str) -> Result<Option<Verified>, String> {
        if let Some(known) = self.verified.lock().get(token) {
            return Ok(Some(known.clone()));
        }
        let Some(unverified) = Unverified::parse(token) else { return Ok(None) };
        let Some(issuer) = unverified.issuer() else { return Ok(None) };
        let of_secret = issuer == ISSUER_OF_SECRETS;
        if !of_secret && !self.settings.issuers.contains(&issuer) {
            return Ok(None);
        }
        self.verify(&unverified)?;
        let claims = if of_secret {
            unverified.claims().map(|claims| Verified::OfSecret(Arc::new(claims)))
        } else {
            unverified.claims().map(|claims| Verified::Requested(Arc::new(claims)))
        };
        if let Some(claims) = &claims {
            let mut verified = self.verified.lock();
            if verified.len() >= VERIFIED {
                verified.clear();
            }
            verified.insert(token.to_owned(), claims.clone());
        }
        Ok(claims)
    }

    /// Fails unless an accepted key signed the token.
    fn verify(&self, token: &Unverified<'_>) -> Result<(), String> {
        let id = token.key_id();
        let mut keys = self.keys().filter(|key| id.is_empty() || key.id() == id).peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found".to_owned());
        }
        if keys.any(|key| token.is_by(key)) {
            return Ok(());
        }
        Err("go-jose/go-jose: error in cryptographic primitive".to_owned())
    }

    /// Returns the document that describes the issuer; `None` if the issuer's name is no address
    /// that a client could find it at. `host` is the address of the server, if it has one.
    pub(crate) fn configuration(&self, host: Option<&str>) -> Option<Bytes> {
        let issuer = self.address()?;
        let base = host.map_or_else(|| issuer.to_owned(), |host| format!("https://{host}"));
        let own = || format!("{}{KEY_SET}", base.trim_end_matches('/'));
        let jwks_uri = self.settings.key_set_uri.clone().unwrap_or_else(own);
        let mut algorithms: Vec<_> = self.keys().map(|key| key.web_key().alg).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let document = Configuration {
            issuer,
            jwks_uri: &jwks_uri,
            response_types_supported: ["id_token"],
            subject_types_supported: ["public"],
            id_token_signing_alg_values_supported: algorithms,
        };
        Some(serde_json::to_vec(&document).expect("texts are JSON").into())
    }

    /// Returns the document with the public keys; `None` as with the configuration.
    pub(crate) fn key_set(&self) -> Option<Bytes> {
        #[derive(Serialize)]
        struct KeySet<T> {
            keys: Vec<T>,
        }
        self.address()?;
        let keys = KeySet { keys: self.keys().map(PublicKey::web_key).collect() };
        Some(serde_json::to_vec(&keys).expect("texts are JSON").into())
    }

    /// Returns the name, if it is an address as the documents need one.
    pub(crate) fn address(&self) -> Option<&str> {
        let (scheme, rest) = self.name().split_once("://")?;
        let is_plain = scheme.eq_ignore_ascii_case("https") && !rest.contains(['?', '#']);
        is_plain.then(|| self.name())
    }
}
