//! Private keys, which sign tokens.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};

use super::key_forms::PrivateForm;
use super::public_key::{Algorithm, KeyError, PublicKey, unsupported};
use crate::pem;

/// A private key that signs the tokens of service accounts: an RSA key of 2048 to 4096 bits, or an
/// ECDSA key of the curve P-256 or P-384.
/// [`Builder::token_signing_key`](crate::Builder::token_signing_key) takes it.
pub struct SigningKey {
    pair: Pair,
    public: PublicKey,
}

#[derive(Debug)]
enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(Box<EcdsaKeyPair>),
}

// === impl SigningKey ===

impl SigningKey {
    /// Reads the first private key in a text in PEM, as kube-apiserver reads
    /// `--service-account-signing-key-file`: in PKCS#1, SEC 1 or PKCS#8, without a password. Other
    /// blocks are skipped.
    ///
    /// # Errors
    ///
    /// Fails if there is no key, or one that the server cannot use.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat_apiserver::{ApiServer, SigningKey};
    ///
    /// let key = SigningKey::parse(&std::fs::read_to_string("service-account.key")?)?;
    /// let server = ApiServer::builder().token_signing_key(key).build();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        for block in pem::blocks(pem) {
            let Some(bytes) = block.bytes() else { continue };
            let form = match block.kind {
                "RSA PRIVATE KEY" => PrivateForm::pkcs1(&bytes),
                "EC PRIVATE KEY" => PrivateForm::sec1(&bytes),
                "PRIVATE KEY" => PrivateForm::pkcs8(&bytes),
                _ => None,
            };
            if let Some(form) = form {
                return Self::new(&form);
            }
        }
        Err(KeyError::NoPrivateKey)
    }

    /// Makes a new key. It is random also in a server with a seed: a seed is public.
    pub(super) fn generate() -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let made = made.expect("the operating system has random numbers");
        let form = PrivateForm::pkcs8(made.as_ref()).expect("a new key is PKCS#8");
        Self::new(&form).expect("a new key is valid")
    }

    fn new(form: &PrivateForm<'_>) -> Result<Self, KeyError> {
        let public = PublicKey::new(form.public().ok_or(KeyError::NoPrivateKey)?)?;
        let pair = match *form {
            PrivateForm::Rsa(bytes) => {
                RsaKeyPair::from_der(bytes).map(|pair| Pair::Rsa(pair.into()))
            }
            PrivateForm::Ecdsa { secret, .. } => {
                let algorithm = match public.algorithm() {
                    Algorithm::P384 => &ECDSA_P384_SHA384_FIXED_SIGNING,
                    Algorithm::P256 | Algorithm::Rsa => &ECDSA_P256_SHA256_FIXED_SIGNING,
                };
                let (point, random) = (public.bytes(), &SystemRandom::new());
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point, random)
                    .map(|pair| Pair::Ecdsa(pair.into()))
            }
        };
        let pair = pair.map_err(|error| unsupported(error.to_string()))?;
        Ok(Self { pair, public })
    }

    /// Returns the public key, which checks what this key signs.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the signature of a message.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let signed = match &self.pair {
            Pair::Ecdsa(pair) => pair.sign(&random, message).map(|made| made.as_ref().to_vec()),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map(|()| signature)
            }
        };
        signed.expect("the operating system has random numbers")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key itself is a secret.
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    /// The signature of `message` by the RSA key, as openssl makes it.
    const RSA_SIGNATURE: &str = concat!(
        "svwh0r9pnjvNEZlpy082RRERwV-jVEBfE4-81CB2C6sAsJt4n1xhrEpdBLkdYxatiF2FbZhilmCavQTn",
        "l-fn9dq8EVBRFEMFQTMzyx6ta9bXZ3g8sNppJ0DHxzwkR_Rgf3MAYrz4lByG9zRELclDAhfvcaZwqx0t",
        "H5j-WTvMVQ4HZNCQVRvYaEKJZuHW8j6viVIe86cPS2ZlJzrYimvVcQI7MHyHL5gNJU3ip4GiyiyTsazm",
        "wiDEL30rG6aS6rxi6HIyvI2f-w3MJtnKwAIhH_4Zdw-m2HLx7w615ejMpcc-08Wa-Tb_qegxoqG99YNh",
        "FzRJT7IQk-GsRDCzUvnlYw",
    );

    #[test]
    fn keys_of_each_form_sign_what_their_public_keys_verify() {
        for (pem, algorithm) in [
            (include_str!("../../tests/keys/rsa-pkcs1.pem"), "RS256"),
            (include_str!("../../tests/keys/rsa-pkcs8.pem"), "RS256"),
            // The first block has the parameters of the curve.
            (include_str!("../../tests/keys/p256-sec1.pem"), "ES256"),
            (include_str!("../../tests/keys/p256-pkcs8.pem"), "ES256"),
            (include_str!("../../tests/keys/p384-sec1.pem"), "ES384"),
        ] {
            let key = SigningKey::parse(pem).unwrap();
            assert_eq!(key.public().algorithm().name(), algorithm);
            let signature = key.sign(b"message");
            let verifies = |name, message| key.public().verifies(name, message, &signature);
            assert!(verifies(algorithm, b"message"), "{algorithm}");
            assert!(!verifies(algorithm, b"massage"), "{algorithm}");
            for other in ["none", "", "HS256", "PS256", "ES512"] {
                assert!(!verifies(other, b"message"), "{algorithm} as {other}");
            }
            let other = SigningKey::generate();
            assert!(!other.public().verifies(algorithm, b"message", &signature), "{algorithm}");
        }
    }

    #[test]
    fn signature_of_an_rsa_key_is_the_one_that_openssl_makes() {
        let key = SigningKey::parse(include_str!("../../tests/keys/rsa-pkcs1.pem")).unwrap();
        assert_eq!(URL_SAFE_NO_PAD.encode(key.sign(b"message")), RSA_SIGNATURE);
    }

    #[test]
    fn text_without_a_private_key_is_refused_with_upstreams_words() {
        let none = "data does not contain a valid RSA or ECDSA private key";
        for (pem, expected) in [
            ("x", none),
            (include_str!("../../tests/keys/p384-public.pem"), none),
            (include_str!("../../tests/keys/p521-sec1.pem"), "its curve is neither"),
            (include_str!("../../tests/keys/p256-without-point.pem"), "`openssl ec` adds"),
            (include_str!("../../tests/keys/rsa-1024.pem"), "needs 2048 to 8192 bits"),
        ] {
            let error = SigningKey::parse(pem).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}: {pem}");
        }
    }

    #[test]
    fn debug_text_shows_no_secret() {
        let pem = include_str!("../../tests/keys/p256-sec1.pem");
        let shown = format!("{:?}", SigningKey::parse(pem).unwrap());
        assert!(shown.starts_with("SigningKey { public: ") && shown.ends_with(" }, .. }"));
    }
}
