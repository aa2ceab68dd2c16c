//! The issuer of the tokens of service accounts: its names, its keys, and what it accepts.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

use super::tokens::random_uid;
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

/// The content of a token whose signature is right.
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

    /// Returns true if a token for this audience is one for the server itself.
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
            id: random_uid(),
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

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::super::Named;
    use super::*;

    const P256: &str = include_str!("../../tests/keys/p256-sec1.pem");
    const RSA: &str = include_str!("../../tests/keys/rsa-pkcs8.pem");

    fn issuer(settings: TokenSettings) -> Issuer {
        Issuer::new(TokenSettings { issuers: vec!["https://i".to_owned()], ..settings })
    }

    fn token_of(issuer: &Issuer) -> String {
        let named = |name: &str, uid: &str| Named { name: name.to_owned(), uid: uid.to_owned() };
        let holder = Holder {
            namespace: "a".to_owned(),
            account: named("b", "c"),
            pod: Some(named("p", "u")),
            node: Some(named("n", "")),
            secret: None,
            warns: Some(60),
        };
        let start = Timestamp::UNIX_EPOCH;
        let expires = start + SignedDuration::from_secs(600);
        issuer.issue(holder, vec!["d".to_owned()], Validity { issued: start, expires })
    }

    fn claims(issuer: &Issuer, token: &str) -> Arc<Claims> {
        match issuer.read(token) {
            Ok(Some(Verified::Requested(claims))) => claims,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the token with another header or with other claims.
    fn altered(token: &str, part: usize, alter: impl Fn(&mut Value)) -> String {
        let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
        let mut value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(&parts[part]).unwrap());
        alter(value.as_mut().unwrap());
        parts[part] = URL_SAFE_NO_PAD.encode(value.unwrap().to_string());
        parts.join(".")
    }

    #[test]
    fn token_says_what_the_real_servers_says() {
        let issuer = issuer(TokenSettings::default());
        let token = token_of(&issuer);
        let part = |place| {
            let text = token.split('.').nth(place).unwrap();
            String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
        };
        let key = issuer.keys().next().unwrap().id();
        assert_eq!(part(0), format!(r#"{{"alg":"ES256","kid":"{key}"}}"#));
        let id = &claims(&issuer, &token).id;
        let bound = r#""node":{"name":"n"},"pod":{"name":"p","uid":"u"}"#;
        let account = r#""serviceaccount":{"name":"b","uid":"c"}"#;
        let holder = format!(r#"{{"namespace":"a",{bound},{account},"warnafter":60}}"#);
        let start = r#"{"aud":["d"],"exp":600,"iat":0,"iss":"https://i""#;
        let end = r#""nbf":0,"sub":"system:serviceaccount:a:b"}"#;
        assert_eq!(part(1), format!(r#"{start},"jti":"{id}","kubernetes.io":{holder},{end}"#));
    }

    #[test]
    fn altered_token_is_not_accepted() {
        let issuer = issuer(TokenSettings::default());
        let token = token_of(&issuer);
        assert_eq!(claims(&issuer, &token).subject, "system:serviceaccount:a:b");
        let failure = "go-jose/go-jose: error in cryptographic primitive";
        let unknown = "invalid signature, no keys found";
        let of_jane = |claims: &mut Value| claims["sub"] = json!("jane");
        let unsigned = |header: &mut Value| header["alg"] = json!("none");
        let of_unknown_key = |header: &mut Value| header["kid"] = json!("x");
        let critical = |header: &mut Value| header["crit"] = json!(["x"]);
        let (message, signature) = token.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[40] ^= 1;
        for (altered, expected) in [
            (altered(&token, 1, of_jane), failure),
            (altered(&token, 0, unsigned), failure),
            (altered(&token, 0, of_unknown_key), unknown),
            (altered(&token, 0, critical), failure),
            (format!("{message}."), failure),
            (format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes)), failure),
            (token_of(&self::issuer(TokenSettings::default())), unknown),
        ] {
            assert_eq!(issuer.read(&altered).unwrap_err(), expected, "{altered}");
        }
        // Such tokens may be those of another authenticator.
        let of_other = altered(&token, 1, |claims| claims["iss"] = json!("https://j"));
        for other in [&*of_other, message, "x.y.z", "", &format!("{token}.x")] {
            assert!(matches!(issuer.read(other), Ok(None)), "{other}");
        }
    }

    #[test]
    fn token_that_names_no_key_is_checked_with_all() {
        let keys = || [RSA, P256].map(|pem| SigningKey::parse(pem).unwrap());
        let accepted = keys().map(|key| key.public().clone()).to_vec();
        let issuer = issuer(TokenSettings { keys: accepted, ..TokenSettings::default() });
        for key in keys() {
            let claims = Claims { issuer: "https://i".to_owned(), ..Claims::default() };
            let header = json!({"alg": key.public().web_key().alg});
            let message = [header.to_string(), serde_json::to_string(&claims).unwrap()]
                .map(|part| URL_SAFE_NO_PAD.encode(part))
                .join(".");
            let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
            assert_eq!(*self::claims(&issuer, &format!("{message}.{signature}")), claims);
        }
    }

    #[test]
    fn given_keys_decide_which_tokens_are_accepted() {
        let key = |pem| SigningKey::parse(pem).unwrap();
        let signing_key = || Some(key(P256));
        let keys = || vec![key(RSA).public().clone()];
        let of_p256 = issuer(TokenSettings { signing_key: signing_key(), ..Default::default() });
        let token = token_of(&of_p256);
        assert!(of_p256.read(&token).unwrap().is_some());
        // The key that signs is not among those that are given.
        let both = TokenSettings { signing_key: signing_key(), keys: keys(), ..Default::default() };
        let both = issuer(both);
        assert!(both.read(&token_of(&both)).is_err());
        // The server has made the key that signs.
        let own = issuer(TokenSettings { keys: keys(), ..Default::default() });
        assert!(own.read(&token_of(&own)).unwrap().is_some() && own.read(&token).is_err());
        let of_rsa = TokenSettings { signing_key: Some(key(RSA)), ..Default::default() };
        let token = token_of(&issuer(of_rsa));
        assert!(own.read(&token).unwrap().is_some() && both.read(&token).unwrap().is_some());
    }

    #[test]
    fn tokens_of_each_issuer_are_accepted_and_the_first_one_issues() {
        let with = |issuers: &[&str]| {
            let signing_key = Some(SigningKey::parse(P256).unwrap());
            let issuers = issuers.iter().map(|issuer| (*issuer).to_owned()).collect();
            Issuer::new(TokenSettings { issuers, signing_key, ..TokenSettings::default() })
        };
        let (old, new) = (with(&["old"]), with(&["new", "old"]));
        assert_eq!(claims(&new, &token_of(&old)).issuer, "old");
        assert!(matches!(old.read(&token_of(&new)), Ok(None)));
        assert_eq!(new.settings().audiences, ["new", "old"]);
    }

    #[test]
    fn remembered_tokens_are_bounded() {
        let issuer = issuer(TokenSettings::default());
        for _ in 0..=VERIFIED {
            claims(&issuer, &token_of(&issuer));
        }
        assert_eq!(issuer.verified.lock().len(), 1);
    }

    #[test]
    fn times_of_a_token_have_a_minute_of_leeway() {
        let issuer = issuer(TokenSettings::default());
        let claims = claims(&issuer, &token_of(&issuer));
        let at = |second| claims.check_time(Timestamp::from_second(second).unwrap());
        assert_eq!([at(-60), at(660)], [Ok(()), Ok(())]);
        let refused = |detail: &str| Err(format!("service account token {detail}"));
        assert_eq!([at(-61), at(661)], [refused("is not valid yet"), refused("has expired")]);
        let later = Claims { starts: None, issued: Some(1000), expires: None, ..(*claims).clone() };
        let at = |second| later.check_time(Timestamp::from_second(second).unwrap());
        assert_eq!([at(939), at(940)], [refused("is issued in the future"), Ok(())]);
    }

    #[test]
    fn documents_name_the_keys_that_are_accepted() {
        let keys = [RSA, P256].map(|pem| SigningKey::parse(pem).unwrap().public().clone());
        let settings = || TokenSettings { keys: keys.to_vec(), ..TokenSettings::default() };
        let signing_key = SigningKey::parse(RSA).ok();
        let signed = issuer(TokenSettings { signing_key, ..settings() });
        let text = |document: Option<Bytes>| String::from_utf8(document.unwrap().to_vec()).unwrap();
        let end =
            r#""response_types_supported":["id_token"],"subject_types_supported":["public"],"#;
        let uri = r#"{"issuer":"https://i","jwks_uri":"https://1.2.3.4:5/openid/v1/jwks","#;
        assert_eq!(
            text(signed.configuration(Some("1.2.3.4:5"))),
            format!(r#"{uri}{end}"id_token_signing_alg_values_supported":["ES256","RS256"]}}"#)
        );
        assert!(text(signed.configuration(None)).contains(r#":"https://i/openid/v1/jwks""#));
        let key_set_uri = Some("https://k".to_owned());
        let given = issuer(TokenSettings { key_set_uri, ..settings() });
        assert!(text(given.configuration(Some("h"))).contains(r#""jwks_uri":"https://k","#));
        let set: Value = serde_json::from_str(&text(signed.key_set())).unwrap();
        let ids = keys.each_ref().map(|key| json!(key.id()));
        assert_eq!([&set["keys"][0]["kid"], &set["keys"][1]["kid"]], [&ids[0], &ids[1]]);
        for name in ["api", "http://i", "https://i?a", "https://i#a"] {
            let other = Issuer::new(TokenSettings { issuers: vec![name.into()], ..settings() });
            assert!(other.configuration(None).is_none() && other.key_set().is_none(), "{name}");
        }
    }
}
