//! JSON Web Tokens: what a token says, its text, and its signature.

use base64::Engine;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use super::{PublicKey, SigningKey};
use crate::go_base64::RAW_URL;

/// The content of a service account's token. The members have the real server's order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Claims {
    /// The servers that accept the token.
    #[serde(rename = "aud", deserialize_with = "one_or_several")]
    pub(crate) audiences: Vec<String>,
    #[serde(rename = "exp")]
    pub(crate) expires: Option<i64>,
    #[serde(rename = "iat")]
    pub(crate) issued: Option<i64>,
    #[serde(rename = "iss")]
    pub(crate) issuer: String,
    /// The identifier of the token.
    #[serde(rename = "jti")]
    pub(crate) id: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) holder: Holder,
    #[serde(rename = "nbf")]
    pub(crate) starts: Option<i64>,
    #[serde(rename = "sub")]
    pub(crate) subject: String,
}

/// The service account that a token was issued for, and the objects without which it is not valid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Holder {
    pub(crate) namespace: String,
    /// The node that the token is bound to or, if there is a pod, that of the pod. Its uid is empty
    /// if there was no such node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Named>,
    #[serde(rename = "serviceaccount")]
    pub(crate) account: Named,
    /// The time from which its use causes warnings: that of the request, if the server grants more.
    #[serde(rename = "warnafter", skip_serializing_if = "Option::is_none")]
    pub(crate) warns: Option<i64>,
}

/// The name and the uid of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// The content of the token in a secret, which a controller makes. It never expires.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct SecretClaims {
    #[serde(rename = "sub")]
    pub(crate) subject: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub(crate) namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub(crate) secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub(crate) account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub(crate) uid: String,
}

/// A token whose signature has not been checked.
pub(super) struct Unverified<'a> {
    header: Header,
    /// The part that is signed.
    message: &'a str,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Header {
    alg: String,
    kid: String,
    /// The members that a reader has to understand.
    crit: Vec<String>,
}

/// The time by which the clocks of servers may differ, as in upstream.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

// === impl Claims ===

impl Claims {
    /// Returns the token with this signature.
    pub(super) fn sign(&self, key: &SigningKey) -> String {
        let public = key.public();
        let header = json!({"alg": public.algorithm().name(), "kid": public.id()}).to_string();
        let claims = serde_json::to_string(self).expect("texts and numbers are JSON");
        let message = format!("{}.{}", RAW_URL.encode(header), RAW_URL.encode(claims));
        let signature = RAW_URL.encode(key.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// Fails with upstream's text if the token is not valid at this time.
    pub(crate) fn check_time(&self, now: Timestamp) -> Result<(), String> {
        let is_after = |time: Timestamp, seconds: Option<i64>| {
            seconds.is_some_and(|seconds| time > at(seconds))
        };
        let is_before = |time: Timestamp, seconds: Option<i64>| {
            seconds.is_some_and(|seconds| time < at(seconds))
        };
        let problem = if is_before(now + LEEWAY, self.starts) {
            "is not valid yet"
        } else if is_after(now - LEEWAY, self.expires) {
            "has expired"
        } else if is_before(now + LEEWAY, self.issued) {
            "is issued in the future"
        } else {
            return Ok(());
        };
        Err(format!("service account token {problem}"))
    }
}

/// Returns a time in seconds since 1970. One that no calendar has is the last one.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Reads a list, or a text in place of a list with one item.
fn one_or_several<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Texts::deserialize(value)? {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    })
}

// === impl Unverified ===

impl<'a> Unverified<'a> {
    /// Reads the text of a token.
    pub(super) fn parse(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.').filter(|(_, rest)| !rest.contains('.'))?;
        let header: Header = serde_json::from_slice(&RAW_URL.decode(header).ok()?).ok()?;
        let payload = RAW_URL.decode(payload).ok()?;
        Some(Self { header, message, payload, signature: RAW_URL.decode(signature).ok()? })
    }

    /// Returns the name of the key that signed the token; empty if the token does not say.
    pub(super) fn key_id(&self) -> &str {
        &self.header.kid
    }

    /// Returns the issuer that the token names.
    pub(super) fn issuer(&self) -> Option<String> {
        Some(self.claims::<Claims>()?.issuer)
    }

    /// Returns what the token says, which may not be true.
    pub(super) fn claims<T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_slice(&self.payload).ok()
    }

    /// Returns true if the signature is that of the key.
    pub(super) fn is_by(&self, key: &PublicKey) -> bool {
        let Header { alg, crit, .. } = &self.header;
        crit.is_empty() && key.verifies(alg, self.message.as_bytes(), &self.signature)
    }
}
