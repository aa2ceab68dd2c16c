//! The settings of tokens.

use std::time::Duration;

use super::Builder;
use crate::access::{PublicKey, SigningKey, User};

impl Builder {
    /// Accepts a bearer token as that of a user, as kube-apiserver's `--token-auth-file` does. It
    /// has an effect with [`authentication`](Self::authentication) or
    /// [`authorization`](Self::authorization) only. Can be called several times.
    ///
    /// A server issues tokens, too: [`ApiServer::token_of`](crate::ApiServer::token_of).
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.push((token.into(), user));
        self
    }

    /// Names the issuer of the tokens of service accounts, as kube-apiserver's
    /// `--service-account-issuer` does. The default is `https://kubernetes.default.svc`. Can be
    /// called several times: the first one issues, tokens of all are accepted.
    pub fn token_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.account_tokens.issuers.push(issuer.into());
        self
    }

    /// Adds an audience of the server itself, as kube-apiserver's `--api-audiences` does: a token
    /// of a service account is valid here if it is for one of them. Without any, the
    /// [issuers](Self::token_issuer) are the audiences.
    pub fn api_audience(mut self, audience: impl Into<String>) -> Self {
        self.account_tokens.audiences.push(audience.into());
        self
    }

    /// Signs the tokens of service accounts with this key, as kube-apiserver's
    /// `--service-account-signing-key-file` does. By default the server makes a key when it issues
    /// the first token. It is random, also with a [`seed`](Self::seed).
    pub fn token_signing_key(mut self, key: SigningKey) -> Self {
        self.account_tokens.signing_key = Some(key);
        self
    }

    /// Accepts the tokens of service accounts that this key signed, as kube-apiserver's
    /// `--service-account-key-file` does. Can be called several times. As there, a
    /// [`token_signing_key`](Self::token_signing_key) does not count beside these keys: it has to
    /// be among them.
    pub fn token_key(mut self, key: PublicKey) -> Self {
        self.account_tokens.keys.push(key);
        self
    }

    /// Limits the lifetime of the tokens of service accounts, as kube-apiserver's
    /// `--service-account-max-token-expiration` does: a request for a longer one gets this one, and
    /// a warning.
    pub fn longest_token_lifetime(mut self, lifetime: Duration) -> Self {
        self.account_tokens.longest_lifetime = Some(lifetime);
        self
    }

    /// Ends the tokens of kubelets when they ask for it, as kube-apiserver's
    /// `--service-account-extend-token-expiration=false` does. By default they are valid for a
    /// year.
    pub fn without_extended_tokens(mut self) -> Self {
        self.account_tokens.refuses_extension = true;
        self
    }

    /// Sets the address of the public keys in `/.well-known/openid-configuration`, as
    /// kube-apiserver's `--service-account-jwks-uri` does. The default is that of the listener.
    pub fn token_key_set_uri(mut self, uri: impl Into<String>) -> Self {
        self.account_tokens.key_set_uri = Some(uri.into());
        self
    }
}
