//! Flags of kube-apiserver about the tokens of service accounts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use homeostat_apiserver::{Builder, PublicKey, SigningKey};
use homeostat_core::parse_go_duration;

/// The flags, with their names in kube-apiserver.
#[derive(Debug, Default, Args)]
pub(crate) struct AccountTokenFlags {
    /// Issuer of the tokens of service accounts. The first of several issues them, and tokens of
    /// all are accepted.
    #[arg(long, value_name = "URL")]
    service_account_issuer: Vec<String>,

    /// Audiences of the server itself, separated by commas: a token of a service account is valid
    /// here if it is for one of them. The default is the issuers.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    api_audiences: Vec<String>,

    /// File with the private key that signs the tokens of service accounts, in PEM: RSA, or ECDSA
    /// of the curve P-256 or P-384. By default the server makes a key, and tokens end with it.
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Option<PathBuf>,

    /// File with public or private keys, in PEM: their tokens of service accounts are accepted. Can
    /// be given several times. The default is the key that signs, which does not count otherwise.
    #[arg(long, value_name = "FILE")]
    service_account_key_file: Vec<PathBuf>,

    /// Longest lifetime of a token of a service account, such as 24h.
    #[arg(long, value_name = "DURATION")]
    service_account_max_token_expiration: Option<String>,

    /// Give tokens of a year to kubelets, which ask for an hour. On by default.
    #[arg(
        long,
        value_name = "BOOLEAN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    service_account_extend_token_expiration: Option<bool>,

    /// Address of the public keys, in the document /.well-known/openid-configuration. The default
    /// is that of the server.
    #[arg(long, value_name = "URL")]
    service_account_jwks_uri: Option<String>,
}

/// The bounds of `--service-account-max-token-expiration`.
const SHORTEST: Duration = Duration::from_secs(3600);
const LONGEST: Duration = Duration::from_secs(1 << 32);

// === impl AccountTokenFlags ===

impl AccountTokenFlags {
    /// Sets how tokens of service accounts are issued and accepted.
    ///
    /// # Errors
    ///
    /// Fails with kube-apiserver's text if a value is invalid or a file has no key.
    pub(crate) fn apply(&self, mut builder: Builder) -> anyhow::Result<Builder> {
        builder = self.issuers()?.into_iter().fold(builder, Builder::token_issuer);
        let audiences = self.api_audiences.iter().filter(|audience| !audience.is_empty());
        builder = audiences.fold(builder, Builder::api_audience);
        if let Some(key) = self.signing_key()? {
            builder = builder.token_signing_key(key);
        }
        builder = self.keys()?.into_iter().fold(builder, Builder::token_key);
        if let Some(lifetime) = self.longest_lifetime()? {
            builder = builder.longest_token_lifetime(lifetime);
        }
        if self.service_account_extend_token_expiration == Some(false) {
            builder = builder.without_extended_tokens();
        }
        if let Some(uri) = self.key_set_uri()? {
            builder = builder.token_key_set_uri(uri);
        }
        Ok(builder)
    }

    fn issuers(&self) -> anyhow::Result<Vec<&str>> {
        let mut seen = BTreeSet::new();
        let issuers = self.service_account_issuer.iter().map(|issuer| {
            ensure!(!issuer.is_empty(), "service-account-issuer should not be an empty string");
            ensure!(seen.insert(issuer), "service-account-issuer {issuer:?} is already specified");
            Ok(issuer.as_str())
        });
        issuers.collect()
    }

    fn signing_key(&self) -> anyhow::Result<Option<SigningKey>> {
        let Some(file) = &self.service_account_signing_key_file else { return Ok(None) };
        let context = "failed to parse service-account-issuer-key-file";
        let pem = read(file).context(context)?;
        let key = SigningKey::parse(&pem)
            .with_context(|| format!("error reading private key file {}", file.display()));
        key.context(context).map(Some)
    }

    fn keys(&self) -> anyhow::Result<Vec<PublicKey>> {
        let mut keys = Vec::new();
        for file in &self.service_account_key_file {
            let context = || format!("failed to parse key file {:?}", file.display().to_string());
            let pem = read(file).with_context(context)?;
            let found = PublicKey::parse_all(&pem)
                .with_context(|| format!("error reading public key file {}", file.display()));
            keys.extend(found.with_context(context)?);
        }
        Ok(keys)
    }

    fn longest_lifetime(&self) -> anyhow::Result<Option<Duration>> {
        let Some(text) = &self.service_account_max_token_expiration else { return Ok(None) };
        let flag = "service-account-max-token-expiration";
        let nanos = parse_go_duration(text).with_context(|| format!("invalid --{flag}"))?;
        if nanos == 0 {
            return Ok(None);
        }
        let lifetime = Duration::from_nanos(nanos.try_into().unwrap_or(0));
        if !(SHORTEST..=LONGEST).contains(&lifetime) {
            bail!("the {flag} must be between 1 hour and 2^32 seconds");
        }
        Ok(Some(lifetime))
    }

    fn key_set_uri(&self) -> anyhow::Result<Option<&str>> {
        let Some(uri) = self.service_account_jwks_uri.as_deref().filter(|uri| !uri.is_empty())
        else {
            return Ok(None);
        };
        let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
        let is_https = scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        ensure!(is_https, "service-account-jwks-uri requires https scheme, parsed as: {uri}");
        Ok(Some(uri))
    }
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}
