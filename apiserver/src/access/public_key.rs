//! Public keys, which check the signatures of tokens.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde::Serialize;

use super::der::Reader;
use super::key_forms::{PrivateForm, PublicForm, info_of_ecdsa, info_of_rsa};
use crate::pem;

/// A public key that checks the signatures of tokens: an RSA key, or an ECDSA key of the curve
/// P-256 or P-384. [`Builder::token_key`](crate::Builder::token_key) takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: Algorithm,
    /// A point of the curve; of an RSA key the sequence of its numbers, in DER.
    bytes: Vec<u8>,
    /// The name of the key in tokens: a hash of it.
    id: String,
}

/// The algorithm of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rsa,
    P256,
    P384,
}

/// A text has no key that the server can use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no private key, or none that can be read.
    #[error("data does not contain a valid RSA or ECDSA private key")]
    NoPrivateKey,
    /// There is no public key, or none that can be read.
    #[error("data does not contain any valid RSA or ECDSA public keys")]
    NoPublicKey,
    /// There is a key that kube-apiserver may use, but this server cannot.
    #[error("the server cannot use the key: {reason}")]
    Unsupported {
        /// The property that is not supported.
        reason: String,
    },
}

/// A key as a JSON Web Key. The members have the real server's order.
#[derive(Debug, Default, Serialize)]
pub(super) struct WebKey<'a> {
    #[serde(rename = "use")]
    purpose: &'static str,
    kty: &'static str,
    kid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    crv: Option<&'static str>,
    pub(super) alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

/// The signatures that keys check, by their names in tokens.
static SIGNATURES: [(&str, Algorithm, &dyn VerificationAlgorithm); 8] = [
    ("ES256", Algorithm::P256, &signature::ECDSA_P256_SHA256_FIXED),
    ("ES384", Algorithm::P384, &signature::ECDSA_P384_SHA384_FIXED),
    ("RS256", Algorithm::Rsa, &signature::RSA_PKCS1_2048_8192_SHA256),
    ("RS384", Algorithm::Rsa, &signature::RSA_PKCS1_2048_8192_SHA384),
    ("RS512", Algorithm::Rsa, &signature::RSA_PKCS1_2048_8192_SHA512),
    ("PS256", Algorithm::Rsa, &signature::RSA_PSS_2048_8192_SHA256),
    ("PS384", Algorithm::Rsa, &signature::RSA_PSS_2048_8192_SHA384),
    ("PS512", Algorithm::Rsa, &signature::RSA_PSS_2048_8192_SHA512),
];

/// The lengths of RSA keys in bytes.
const MODULUS_BYTES: RangeInclusive<usize> = 256..=1024;

/// The identifiers of the curves, without tag and length.
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

// === impl PublicKey ===

impl PublicKey {
    /// Reads the keys in a text in PEM as kube-apiserver reads `--service-account-key-file`: public
    /// keys, the public parts of private keys, and the keys of certificates. Other blocks are
    /// skipped, and so are ECDSA keys in PKCS#8.
    ///
    /// # Errors
    ///
    /// Fails if there is no key, or one that the server cannot use.
    pub fn parse_all(pem: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        for bytes in pem::blocks(pem).iter().filter_map(pem::Block::bytes) {
            // Not only the kind of a block decides.
            let of_pkcs8 =
                || PrivateForm::pkcs8(&bytes).filter(|form| matches!(form, PrivateForm::Rsa(_)));
            let private = PrivateForm::pkcs1(&bytes).or_else(of_pkcs8);
            let private = private.or_else(|| PrivateForm::sec1(&bytes));
            let form = private.and_then(|form| form.public());
            let form = form.or_else(|| PublicForm::parse(&bytes));
            keys.extend(form.map(Self::new).transpose()?);
        }
        if keys.is_empty() { Err(KeyError::NoPublicKey) } else { Ok(keys) }
    }

    /// Reads a key from its form.
    pub(super) fn new(form: PublicForm<'_>) -> Result<Self, KeyError> {
        let (algorithm, bytes, info) = match form {
            PublicForm::Rsa(numbers) => {
                let modulus = Reader::of_sequence(&numbers).and_then(|mut key| key.take_number());
                if !modulus.is_some_and(|modulus| MODULUS_BYTES.contains(&modulus.len())) {
                    return Err(unsupported("an RSA key needs 2048 to 8192 bits"));
                }
                let info = info_of_rsa(&numbers);
                (Algorithm::Rsa, numbers, info)
            }
            PublicForm::Ecdsa { curve, point } => {
                let algorithm = Algorithm::of_curve(curve)?;
                let point = point.ok_or_else(|| {
                    unsupported("its public part is missing, which `openssl ec` adds")
                })?;
                (algorithm, point.to_vec(), info_of_ecdsa(curve, point))
            }
        };
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, &info));
        Ok(Self { algorithm, bytes, id })
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the point of the curve; of an RSA key its numbers.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if a signature is that of the message by the private key. `name` names the
    /// algorithm of the signature.
    pub(super) fn verifies(&self, name: &str, message: &[u8], signature: &[u8]) -> bool {
        let known = SIGNATURES
            .iter()
            .find(|(known, algorithm, _)| *known == name && *algorithm == self.algorithm);
        known.is_some_and(|(_, _, algorithm)| {
            UnparsedPublicKey::new(*algorithm, &self.bytes).verify(message, signature).is_ok()
        })
    }

    pub(super) fn web_key(&self) -> WebKey<'_> {
        let encode = |bytes: &[u8]| Some(URL_SAFE_NO_PAD.encode(bytes));
        let (purpose, kid, alg) = ("sig", &*self.id, self.algorithm.name());
        let key = WebKey { purpose, kid, alg, ..WebKey::default() };
        let Some(crv) = self.algorithm.curve() else {
            let numbers = Reader::of_sequence(&self.bytes);
            let [n, e] = numbers
                .map_or([None; 2], |mut numbers| [numbers.take_number(), numbers.take_number()]);
            return WebKey { kty: "RSA", n: n.and_then(encode), e: e.and_then(encode), ..key };
        };
        // The first byte says that both coordinates follow.
        let point = &self.bytes[1..];
        let (x, y) = point.split_at(point.len() / 2);
        WebKey { kty: "EC", crv: Some(crv), x: encode(x), y: encode(y), ..key }
    }
}

pub(super) fn unsupported(reason: impl Into<String>) -> KeyError {
    KeyError::Unsupported { reason: reason.into() }
}

// === impl Algorithm ===

impl Algorithm {
    fn of_curve(curve: &[u8]) -> Result<Self, KeyError> {
        match curve {
            P256 => Ok(Self::P256),
            P384 => Ok(Self::P384),
            _ => Err(unsupported("its curve is neither P-256 nor P-384")),
        }
    }

    /// Returns the name of the signatures that a key of this algorithm makes.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rsa => "RS256",
            Self::P256 => "ES256",
            Self::P384 => "ES384",
        }
    }

    fn curve(self) -> Option<&'static str> {
        match self {
            Self::Rsa => None,
            Self::P256 => Some("P-256"),
            Self::P384 => Some("P-384"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifiers that kube-apiserver gives the keys, computed by openssl.
    const RSA_ID: &str = "njFb_N0eRhRZLEO2HzptG45kBWY6K4EAql6esItzyx8";
    const P256_ID: &str = "dWFvxjIR04snokWIuD_ilH_WCAGbotfRheE7Y_bZSVk";
    const P384_ID: &str = "uq0ZOkb_VeDCzcSTTH1Ix9zUEfRKOGE-Wbo0Q2OnXl0";

    #[test]
    fn keys_of_each_form_have_the_real_servers_identifiers() {
        for (pem, id) in [
            (include_str!("../../tests/keys/rsa-pkcs1.pem"), RSA_ID),
            (include_str!("../../tests/keys/rsa-pkcs8.pem"), RSA_ID),
            (include_str!("../../tests/keys/rsa-public.pem"), RSA_ID),
            (include_str!("../../tests/keys/p256-sec1.pem"), P256_ID),
            (include_str!("../../tests/keys/p256-public.pem"), P256_ID),
            (include_str!("../../tests/keys/p384-sec1.pem"), P384_ID),
            (include_str!("../../tests/keys/p384-certificate.pem"), P384_ID),
        ] {
            let keys = PublicKey::parse_all(pem).unwrap();
            let ids: Vec<&str> = keys.iter().map(PublicKey::id).collect();
            assert_eq!(ids, [id], "{pem}");
        }
    }

    #[test]
    fn several_keys_of_a_text_are_read() {
        let pem = concat!(
            include_str!("../../tests/keys/p384-public.pem"),
            "-----BEGIN NOTHING-----\nAAAA\n-----END NOTHING-----\n",
            include_str!("../../tests/keys/rsa-public.pem"),
        );
        let keys = PublicKey::parse_all(pem).unwrap();
        let ids: Vec<&str> = keys.iter().map(PublicKey::id).collect();
        assert_eq!(ids, [P384_ID, RSA_ID]);
    }

    #[test]
    fn text_without_a_key_is_refused_with_upstreams_words() {
        let none = "data does not contain any valid RSA or ECDSA public keys";
        for (pem, expected) in [
            ("", none),
            // kube-apiserver reads no such key here, either.
            (include_str!("../../tests/keys/p256-pkcs8.pem"), none),
            (include_str!("../../tests/keys/p521-sec1.pem"), "its curve is neither"),
            (include_str!("../../tests/keys/p256-without-point.pem"), "`openssl ec` adds"),
            (include_str!("../../tests/keys/rsa-1024.pem"), "needs 2048 to 8192 bits"),
        ] {
            let error = PublicKey::parse_all(pem).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}: {pem}");
        }
    }

    #[test]
    fn web_keys_have_the_numbers_of_the_keys() {
        let of = |pem| {
            let keys = PublicKey::parse_all(pem).unwrap();
            serde_json::to_string(&keys[0].web_key()).unwrap()
        };
        let rsa = of(include_str!("../../tests/keys/rsa-public.pem"));
        let start =
            format!(r#"{{"use":"sig","kty":"RSA","kid":"{RSA_ID}","alg":"RS256","n":"ukQ7"#);
        assert!(rsa.starts_with(&start) && rsa.ends_with(r#"","e":"AQAB"}"#), "{rsa}");
        let ecdsa = of(include_str!("../../tests/keys/p256-public.pem"));
        let start = r#"{"use":"sig","kty":"EC","#;
        let expected = format!(
            r#"{start}"kid":"{P256_ID}","crv":"P-256","alg":"ES256","x":"{}","y":"{}"}}"#,
            "lWK0SmJa18EsrzzZeO8Av7KEI-kKPBcFMDEe9Z9lGI0",
            "4f4IHpyoVeP6yU9SDL9bVhurrvRTwWFY4PUqJ-v8dzY"
        );
        assert_eq!(ecdsa, expected);
    }
}
