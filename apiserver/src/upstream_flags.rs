//! Flags of kube-apiserver that users and test suites pass: what they mean here.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use homeostat_apiserver::{AdmissionPlugin, Builder, User};
use homeostat_core::parse_go_bool;
use http::HeaderValue;

use crate::account_token_flags::AccountTokenFlags;
use crate::token_file;

/// Flags of kube-apiserver, so that the program can take its place: envtest, for example, starts it
/// with those below.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Flags of kube-apiserver")]
pub(crate) struct Flags {
    /// Feature gates, such as A=true,B=false. The server has no gates: each is logged once and
    /// ignored.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    feature_gates: Vec<String>,

    /// Admission plugins to switch off, separated by commas. Those that the server does not have
    /// are off anyway.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// Admission plugins to switch on, separated by commas. The server warns about those that it
    /// does not have.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// File with the certificates of authorities, in PEM. A client certificate that one of them
    /// signed names a user, as one of the server's own authority does. Needs --secure or
    /// --secure-port.
    #[arg(long, value_name = "FILE", alias = "client-ca", requires = "tls")]
    client_ca_file: Option<PathBuf>,

    /// Accept requests without credentials, as those of the user system:anonymous. Needs --secure
    /// or --secure-port.
    #[arg(
        long,
        value_name = "BOOLEAN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        requires = "tls"
    )]
    anonymous_auth: Option<bool>,

    /// Port to serve TLS at, with tokens and roles as by --secure. Takes the place of --listen.
    #[arg(long, value_name = "PORT", group = "tls", conflicts_with = "listen")]
    secure_port: Option<u16>,

    /// Address of --secure-port. The default is 0.0.0.0: all interfaces.
    #[arg(long, value_name = "IP", requires = "secure_port")]
    bind_address: Option<IpAddr>,

    /// File with the certificate that clients see, in PEM. The default is one that the server
    /// makes at the start.
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// File with the key of --tls-cert-file, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    /// Folder with the certificate apiserver.crt and its key apiserver.key, if --tls-cert-file is
    /// not set. Nothing is written to it.
    #[arg(long, value_name = "FOLDER")]
    cert_dir: Option<PathBuf>,

    /// File with bearer tokens, as lines of TOKEN,USER,UID,"GROUP,GROUP". Needs --secure or
    /// --secure-port.
    #[arg(long, value_name = "FILE", requires = "tls")]
    token_auth_file: Option<PathBuf>,

    /// Directives of the header Strict-Transport-Security, which each reply then has, such as
    /// max-age=31536000,includeSubDomains. Needs --secure or --secure-port.
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "tls")]
    strict_transport_security_directives: Vec<String>,

    #[command(flatten)]
    account_tokens: AccountTokenFlags,

    /// Ways to check permissions. With `AlwaysAllow` every user may do everything, and requests
    /// without credentials are refused. Else the server has RBAC only, and permits with Node what
    /// RBAC does.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = MODES)]
    authorization_mode: Vec<String>,
}

/// The values of `--authorization-mode`.
const MODES: [&str; 3] = ["RBAC", "Node", ALWAYS_ALLOW];
const ALWAYS_ALLOW: &str = "AlwaysAllow";

/// Default of `--bind-address`.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The files of `--cert-dir`.
const CERTIFICATE: &str = "apiserver.crt";
const KEY: &str = "apiserver.key";

/// The plugins that flags switch on, with these flags.
pub(crate) const OPTIONAL: [(&str, &str); 2] =
    [(QUOTAS, "--quota-admission"), (SERVICE_ACCOUNTS, "--service-account-admission")];
pub(crate) const QUOTAS: &str = "ResourceQuota";
pub(crate) const SERVICE_ACCOUNTS: &str = "ServiceAccount";
/// Admission plugins of kube-apiserver 1.37 that the server does not have: they are off.
const ABSENT: [&str; 10] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceExists",
    "NodeRestriction",
    "PodGroupProtection",
    "PodTolerationRestriction",
];

// === impl Flags ===

impl Flags {
    pub(crate) fn has_secure_port(&self) -> bool {
        self.secure_port.is_some()
    }

    /// Returns the address to listen on.
    pub(crate) fn address(&self, default: SocketAddr) -> SocketAddr {
        let address = self.bind_address.unwrap_or(ANY);
        self.secure_port.map_or(default, |port| SocketAddr::new(address, port))
    }

    pub(crate) fn refuses_anonymous(&self) -> bool {
        self.anonymous_auth == Some(false)
    }

    /// Returns true if every user may do everything.
    pub(crate) fn allows_all(&self) -> bool {
        self.authorization_mode.iter().any(|mode| mode == ALWAYS_ALLOW)
    }

    /// Sets how tokens of service accounts are issued and accepted.
    pub(crate) fn account_tokens(&self, builder: Builder) -> anyhow::Result<Builder> {
        self.account_tokens.apply(builder)
    }

    /// Returns the tokens of `--token-auth-file`, with their users.
    pub(crate) fn tokens(&self) -> anyhow::Result<Vec<(String, User)>> {
        let Some(file) = &self.token_auth_file else { return Ok(Vec::new()) };
        token_file::parse(&read(file)?).with_context(|| format!("invalid {}", file.display()))
    }

    /// Returns the certificates of `--client-ca-file`.
    pub(crate) fn client_authority(&self) -> anyhow::Result<Option<String>> {
        self.client_ca_file.as_deref().map(read).transpose()
    }

    /// Returns the certificate that clients see, and its key. Returns `None` if the server has to
    /// make one.
    pub(crate) fn serving_certificate(&self) -> anyhow::Result<Option<(String, String)>> {
        let given = self.tls_cert_file.clone().zip(self.tls_private_key_file.clone());
        let (certificate, key) = match (given, &self.cert_dir) {
            (Some(given), _) => given,
            (None, Some(folder)) => (folder.join(CERTIFICATE), folder.join(KEY)),
            (None, None) => return Ok(None),
        };
        if self.tls_cert_file.is_none() && !certificate.exists() {
            return Ok(None);
        }
        Ok(Some((read(&certificate)?, read(&key)?)))
    }

    /// Returns the value of the header `Strict-Transport-Security`, if replies have one.
    ///
    /// # Errors
    ///
    /// Fails if a directive is unknown.
    pub(crate) fn transport_security(&self) -> anyhow::Result<Option<HeaderValue>> {
        const FLAG: &str = "strict-transport-security-directives";
        let directives = &self.strict_transport_security_directives;
        if directives.iter().all(String::is_empty) && directives.len() < 2 {
            return Ok(None);
        }
        for directive in directives {
            ensure!(!directive.trim().is_empty(), "empty value in {FLAG}");
            let age = directive.split_once('=').filter(|(name, _)| *name == "max-age");
            ensure!(
                matches!(&**directive, "includeSubDomains" | "preload")
                    || age.is_some_and(|(_, seconds)| !seconds.contains('=')),
                "--{FLAG} invalid, allowed values: max-age=expireTime, includeSubDomains, preload. \
                 see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
            );
        }
        let value = HeaderValue::try_from(directives.join("; "));
        Ok(Some(value.with_context(|| format!("invalid --{FLAG}"))?))
    }

    /// Returns the plugins that the server has to switch off. `enabled` are the optional ones that
    /// are on.
    ///
    /// # Errors
    ///
    /// Fails if a plugin is unknown, or if another flag switches it on.
    pub(crate) fn disabled_plugins(
        &self,
        enabled: &[&str],
    ) -> anyhow::Result<Vec<AdmissionPlugin>> {
        let mut disabled = Vec::new();
        for name in items(&self.disable_admission_plugins) {
            let plugin = AdmissionPlugin::ALL.into_iter().find(|plugin| plugin.name() == name);
            let optional = OPTIONAL.iter().find(|(plugin, _)| *plugin == name);
            match (plugin, optional) {
                (Some(plugin), _) => disabled.push(plugin),
                (None, Some((plugin, flag))) if enabled.contains(plugin) => {
                    bail!("{plugin} is disabled, but {flag} enables it")
                }
                (None, Some(_)) => {}
                (None, None) if ABSENT.contains(&name) => {}
                (None, None) => bail!("the admission plugin {name} is unknown"),
            }
        }
        Ok(disabled)
    }

    /// Returns true if `--enable-admission-plugins` names a plugin.
    pub(crate) fn enables(&self, plugin: &str) -> bool {
        self.enable_admission_plugins.iter().any(|enabled| enabled == plugin)
    }

    /// Returns the plugins to switch on that are off by default.
    pub(crate) fn added_plugins(&self) -> impl Iterator<Item = AdmissionPlugin> {
        let is_named = |plugin: &AdmissionPlugin| self.enables(plugin.name());
        AdmissionPlugin::ALL.into_iter().filter(|plugin| !plugin.is_default()).filter(is_named)
    }

    /// Returns the enabled plugins that the server does not have.
    ///
    /// # Errors
    ///
    /// Fails if a plugin is unknown.
    pub(crate) fn absent_plugins(&self) -> anyhow::Result<Vec<&str>> {
        let names = items(&self.enable_admission_plugins);
        let mut absent = Vec::new();
        let is_optional = |name: &&str| OPTIONAL.iter().any(|(plugin, _)| plugin == name);
        for name in names.filter(|name| !is_optional(name)) {
            if ABSENT.contains(&name) {
                absent.push(name);
            } else if AdmissionPlugin::ALL.into_iter().all(|plugin| plugin.name() != name) {
                bail!("the admission plugin {name} is unknown");
            }
        }
        Ok(absent)
    }

    /// Returns the names of the feature gates that are set. The server has none: its features are
    /// those of kube-apiserver with its default gates.
    ///
    /// # Errors
    ///
    /// Fails if a gate is not set to a boolean of Go's `ParseBool`.
    pub(crate) fn ignored_gates(&self) -> anyhow::Result<BTreeSet<&str>> {
        let name = |gate: &str| -> anyhow::Result<()> {
            let (_, value) =
                gate.split_once('=').with_context(|| format!("no value for {gate}"))?;
            parse_go_bool(value)
                .map(|_| ())
                .with_context(|| format!("{gate} is neither true nor false"))
        };
        items(&self.feature_gates).try_for_each(name).context("invalid --feature-gates")?;
        Ok(items(&self.feature_gates).filter_map(|gate| Some(gate.split_once('=')?.0)).collect())
    }
}

/// Returns the items of a list. A flag with an empty value has none.
fn items(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter().map(String::as_str).filter(|item| !item.is_empty())
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn plugins_that_the_server_has_are_switched_off() {
        let off = |plugins: &[&str], enabled: &[&str]| {
            let disable_admission_plugins = texts(plugins);
            Flags { disable_admission_plugins, ..Flags::default() }.disabled_plugins(enabled)
        };
        assert_eq!(
            off(&["ServiceAccount", "", "LimitRanger", "ResourceQuota"], &[]).unwrap(),
            [AdmissionPlugin::LimitRanger]
        );
        for (plugin, expected) in [
            ("ResourceQuota", "--quota-admission"),
            ("ServiceAccount", "--service-account-admission"),
            ("LimitRangr", "is unknown"),
        ] {
            let error =
                off(&[plugin], &["ResourceQuota", "ServiceAccount"]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn enabled_plugins_that_the_server_does_not_have_are_named() {
        let with = |plugins: &[&str]| Flags {
            enable_admission_plugins: texts(plugins),
            ..Flags::default()
        };
        let flags = with(&["LimitRanger", "ResourceQuota", "ServiceAccount", "AlwaysDeny"]);
        assert_eq!(flags.absent_plugins().unwrap(), ["AlwaysDeny"]);
        assert_eq!(flags.added_plugins().count(), 0);
        let added: Vec<_> = with(&["PodNodeSelector", "LimitRanger"]).added_plugins().collect();
        assert_eq!(added, [AdmissionPlugin::PodNodeSelector]);
        assert!(flags.enables(QUOTAS) && flags.enables(SERVICE_ACCOUNTS));
        assert!(with(&["LimitRangr"]).absent_plugins().is_err());
    }

    #[test]
    fn directives_of_transport_security_are_joined_and_checked() {
        let value = |directives: &[&str]| {
            let strict_transport_security_directives = texts(directives);
            Flags { strict_transport_security_directives, ..Flags::default() }.transport_security()
        };
        assert_eq!(value(&[]).unwrap(), None);
        assert_eq!(value(&[""]).unwrap(), None);
        assert_eq!(
            value(&["max-age=60", "includeSubDomains", "preload"]).unwrap().unwrap(),
            "max-age=60; includeSubDomains; preload"
        );
        for (directive, expected) in [
            (" ", "empty value in strict-transport-security-directives"),
            ("max-age", "allowed values: max-age=expireTime"),
            ("max-age=1=2", "allowed values"),
            ("min-age=1", "allowed values"),
            ("max-age=\n", "invalid --strict"),
        ] {
            let error = value(&[directive]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn plugin_is_either_there_or_absent() {
        let known = AdmissionPlugin::ALL.map(AdmissionPlugin::name);
        let known = known.into_iter().chain(OPTIONAL.map(|(plugin, _)| plugin));
        let both: Vec<&str> = known.filter(|plugin| ABSENT.contains(plugin)).collect();
        assert!(both.is_empty(), "{both:?}");
    }

    #[test]
    fn feature_gates_are_named_once_and_need_a_value() {
        let with = |gates| Flags { feature_gates: texts(gates), ..Flags::default() };
        let flags = with(&["A=true", "B=False", "A=false", "C=1"]);
        assert_eq!(flags.ignored_gates().unwrap(), BTreeSet::from(["A", "B", "C"]));
        assert!(with(&["A"]).ignored_gates().is_err());
        assert!(with(&["A=2"]).ignored_gates().is_err());
    }
}
