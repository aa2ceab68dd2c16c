//! [`Kubeconfig`]: the credentials that a kubeconfig contains, or that are in files that it names.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;
use kube_client::config::AuthInfo;
use secrecy::ExposeSecret;
use tower::BoxError;

use crate::client::material::{Material, PemPair, header};

/// Credentials in the kubeconfig, or in files that it names.
///
/// It keeps the paths, not the contents of files.
pub(super) struct Kubeconfig {
    authorization: Authorization,
    /// The certificate and its key.
    identity: Option<(Pem, Pem)>,
}

/// In the order of precedence: `username` with `password`, `tokenFile`, `token`.
enum Authorization {
    None,
    Fixed(HeaderValue),
    TokenFile {
        path: PathBuf,
        /// The `token`, which counts until the file was read for the first time.
        until_read: Option<HeaderValue>,
    },
}

/// Text is decoded once. A file is read at each reload.
enum Pem {
    Text(Vec<u8>),
    File(PathBuf),
}

// === impl Kubeconfig ===

impl Kubeconfig {
    pub(super) fn new(user: &AuthInfo) -> Result<Self, BoxError> {
        // An empty text counts as none, as in client-go.
        let password = user.password.as_ref().map(ExposeSecret::expose_secret);
        let token = user.token.as_ref().map(ExposeSecret::expose_secret);
        let token = token.filter(|token| !token.is_empty());
        let token = token.map(|token| header("Bearer", token)).transpose()?;
        let file = user.token_file.as_ref().filter(|file| !file.is_empty());
        let authorization = match (&user.username, password, file) {
            (Some(name), Some(password), _) if !(name.is_empty() && password.is_empty()) => {
                let pair = BASE64.encode(format!("{name}:{password}"));
                Authorization::Fixed(header("Basic", &pair)?)
            }
            (_, _, Some(file)) => Authorization::TokenFile { path: file.into(), until_read: token },
            _ => token.map_or(Authorization::None, Authorization::Fixed),
        };
        let certificate = Pem::new(
            user.client_certificate_data.as_deref(),
            user.client_certificate.as_deref(),
            "client-certificate-data",
        )?;
        let key = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
        let key = Pem::new(key, user.client_key.as_deref(), "client-key-data")?;
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err("the client certificate has no client-key".into()),
            (None, Some(_)) => return Err("the client key has no client-certificate".into()),
        };
        Ok(Self { authorization, identity })
    }

    /// Returns true if there are no credentials.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.authorization, Authorization::None) && self.identity.is_none()
    }

    /// Returns true if a part is in a file, which is then read again each minute.
    pub(super) fn has_files(&self) -> bool {
        matches!(self.authorization, Authorization::TokenFile { .. })
            || self.identity.as_ref().is_some_and(|(certificate, key)| {
                matches!(certificate, Pem::File(_)) || matches!(key, Pem::File(_))
            })
    }

    /// Reads the files for the first time. A token file that cannot be read yet is replaced by the
    /// token, if there is one.
    pub(super) fn read_first(&self) -> Result<Material, BoxError> {
        match &self.authorization {
            Authorization::TokenFile { path, until_read: Some(token) } => {
                self.read_with(bearer(path).unwrap_or_else(|_| token.clone()).into())
            }
            _ => self.read(),
        }
    }

    /// Reads the files.
    ///
    /// It blocks: the caller runs it on a thread for blocking work, except when the client is
    /// built.
    pub(super) fn read(&self) -> Result<Material, BoxError> {
        let authorization = match &self.authorization {
            Authorization::None => None,
            Authorization::Fixed(header) => Some(header.clone()),
            Authorization::TokenFile { path, .. } => Some(bearer(path)?),
        };
        self.read_with(authorization)
    }

    fn read_with(&self, authorization: Option<HeaderValue>) -> Result<Material, BoxError> {
        let pem = match &self.identity {
            None => None,
            Some((certificate, key)) => {
                Some(PemPair { certificate: certificate.read()?, key: key.read()? })
            }
        };
        Ok(Material { authorization, pem, expires_at: None })
    }
}

// === impl Pem ===

impl Pem {
    /// Returns the text if there is one, else the file: the kubeconfig's precedence.
    fn new(
        base64: Option<&str>,
        file: Option<&str>,
        field: &str,
    ) -> Result<Option<Self>, BoxError> {
        match (base64, file) {
            (Some(text), _) if !text.is_empty() => {
                let text = BASE64.decode(text);
                Ok(Some(Self::Text(text.map_err(|error| format!("invalid {field}: {error}"))?)))
            }
            (_, Some(file)) if !file.is_empty() => Ok(Some(Self::File(file.into()))),
            _ => Ok(None),
        }
    }

    /// Returns the PEM text.
    fn read(&self) -> Result<Vec<u8>, BoxError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => read(path),
        }
    }
}

/// Reads a token file.
fn bearer(path: &PathBuf) -> Result<HeaderValue, BoxError> {
    let token = String::from_utf8(read(path)?)?;
    let token = token.trim();
    if token.is_empty() {
        // The file may be written at this moment.
        let path = path.display().to_string();
        return Err(format!("read empty token from file {path:?}").into());
    }
    header("Bearer", token)
}

/// Reads a file. The error names its path.
fn read(path: &PathBuf) -> Result<Vec<u8>, BoxError> {
    let content = std::fs::read(path);
    content.map_err(|error| format!("failed to read {}: {error}", path.display()).into())
}
