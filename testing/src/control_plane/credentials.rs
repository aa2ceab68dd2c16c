//! Certificates, keys, a token, and the kubeconfigs that contain them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::error::ControlPlaneError;

/// The files of kube-apiserver and the credentials of its clients.
///
/// One certificate authority signs the certificates of the server and of the client. It is deleted
/// with the directory.
#[derive(Debug)]
pub(super) struct Credentials {
    /// The certificate of the authority, by which clients and server verify each other.
    pub(super) authority: PathBuf,
    pub(super) serving_certificate: PathBuf,
    pub(super) serving_key: PathBuf,
    /// Signs service account tokens.
    pub(super) account_key: PathBuf,
    /// Verifies service account tokens.
    pub(super) account_public_key: PathBuf,
    /// One line per bearer token: `token,user,uid,"groups"`.
    pub(super) tokens: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) token_kubeconfig: PathBuf,
    /// The certificate of the authority for a kubeconfig: base64 of PEM.
    authority_data: String,
    /// The `user` of each kubeconfig.
    certificate_user: Value,
    token_user: Value,
}

// === impl Credentials ===

impl Credentials {
    /// Creates keys, certificates and a token, and writes the files of kube-apiserver to
    /// `directory`.
    pub(super) fn create(directory: &Path) -> Result<Self, ControlPlaneError> {
        let authority = authority().map_err(ControlPlaneError::certificates)?;
        let serving =
            leaf(&authority, "kube-apiserver", None).map_err(ControlPlaneError::certificates)?;
        let admin = leaf(&authority, "admin", Some("system:masters"))
            .map_err(ControlPlaneError::certificates)?;
        let account = KeyPair::generate().map_err(ControlPlaneError::certificates)?;
        // The public key of a new, otherwise unused key pair serves as 32 random bytes.
        let token = KeyPair::generate().map_err(ControlPlaneError::certificates)?;
        let token = STANDARD.encode(&token.public_key_raw()[1..33]);

        let at = |name: &str| directory.join(name);
        let credentials = Self {
            authority: at("authority.crt"),
            serving_certificate: at("serving.crt"),
            serving_key: at("serving.key"),
            account_key: at("service-account.key"),
            account_public_key: at("service-account.pub"),
            tokens: at("tokens.csv"),
            kubeconfig: at("kubeconfig"),
            token_kubeconfig: at("token-kubeconfig"),
            authority_data: STANDARD.encode(authority.pem()),
            certificate_user: json!({
                "client-certificate-data": STANDARD.encode(&admin.certificate),
                "client-key-data": STANDARD.encode(&admin.key),
            }),
            token_user: json!({ "token": &token }),
        };
        write(&[
            (&credentials.authority, &authority.pem()),
            (&credentials.serving_certificate, &serving.certificate),
            (&credentials.serving_key, &serving.key),
            (&credentials.account_key, &account.serialize_pem()),
            (&credentials.account_public_key, &account.public_key_pem()),
            (&credentials.tokens, &format!("{token},token-admin,1,\"system:masters\"\n")),
        ])
        .map(|()| credentials)
    }

    /// Returns the client configurations for `port`: by certificate, and by token.
    pub(super) async fn configs(&self, port: u16) -> Result<(Config, Config), ControlPlaneError> {
        let certificate = config(self.kubeconfig_for(port, &self.certificate_user)).await?;
        let token = config(self.kubeconfig_for(port, &self.token_user)).await?;
        Ok((certificate, token))
    }

    pub(super) fn write_kubeconfigs(&self, port: u16) -> Result<(), ControlPlaneError> {
        // JSON is YAML.
        let by_certificate = self.kubeconfig_for(port, &self.certificate_user).to_string();
        let by_token = self.kubeconfig_for(port, &self.token_user).to_string();
        write(&[(&self.kubeconfig, &by_certificate), (&self.token_kubeconfig, &by_token)])
    }

    fn kubeconfig_for(&self, port: u16, user: &Value) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "control-plane",
            "clusters": [{ "name": "control-plane", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority-data": self.authority_data,
            }}],
            "users": [{ "name": "admin", "user": user }],
            "contexts": [{ "name": "control-plane", "context": {
                "cluster": "control-plane", "user": "admin", "namespace": "default",
            }}],
        })
    }
}

/// Writes files that only the current user can read.
fn write(files: &[(&PathBuf, &String)]) -> Result<(), ControlPlaneError> {
    files
        .iter()
        .try_for_each(|(path, content)| write_private(path, content))
        .map_err(|source| ControlPlaneError::Directory { source })
}

/// A certificate and its key, both as PEM.
struct Leaf {
    certificate: String,
    key: String,
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = name("homeostat control plane", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// Creates a client certificate if there is a group, otherwise a server certificate.
fn leaf(
    authority: &CertifiedIssuer<'static, KeyPair>,
    common_name: &str,
    group: Option<&str>,
) -> Result<Leaf, rcgen::Error> {
    let (names, purpose) = match group {
        Some(_) => (Vec::new(), ExtendedKeyUsagePurpose::ClientAuth),
        None => (
            vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            ExtendedKeyUsagePurpose::ServerAuth,
        ),
    };
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = name(common_name, group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(Leaf { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a subject. Kubernetes reads the name of a user from CN and the group from O.
fn name(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

async fn config(kubeconfig: Value) -> Result<Config, ControlPlaneError> {
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig).map_err(ControlPlaneError::client)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(ControlPlaneError::client)?;
    config.default_retry = false;
    // The server is on this machine; proxies in the environment do not apply.
    config.proxy_url = None;
    Ok(config)
}

fn write_private(path: &Path, content: &str) -> io::Result<()> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    let mut file: File = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn kubeconfig_files_match_the_configs() {
        let directory = tempfile::tempdir().unwrap();
        let credentials = Credentials::create(directory.path()).unwrap();
        credentials.write_kubeconfigs(4711).unwrap();
        let (by_certificate, by_token) = credentials.configs(4711).await.unwrap();

        for (path, config) in
            [(&credentials.kubeconfig, by_certificate), (&credentials.token_kubeconfig, by_token)]
        {
            let file = Kubeconfig::read_from(path).unwrap();
            let read =
                Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
            assert_eq!(read.cluster_url, "https://127.0.0.1:4711/");
            assert_eq!(read.cluster_url, config.cluster_url);
            assert_eq!(read.root_cert, config.root_cert);
            assert_eq!(
                read.auth_info.client_certificate_data,
                config.auth_info.client_certificate_data
            );
        }
    }

    #[test]
    fn tokens_of_two_control_planes_differ() {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let tokens = directories.each_ref().map(|directory| {
            let credentials = Credentials::create(directory.path()).unwrap();
            fs::read_to_string(credentials.tokens).unwrap()
        });
        assert_ne!(tokens[0], tokens[1]);
    }
}
