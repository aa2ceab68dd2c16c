//! Finds the configuration of the server.
//!
//! The search ends at the first of these that exists:
//!
//! 1. the files of `$KUBECONFIG` that exist, merged, or `~/.kube/config` without that variable;
//! 2. the server of the option `master`, without credentials;
//! 3. the service account of the pod.
//!
//! The option `context` requires a kubeconfig. The option `master` replaces the server's URL in
//! each case, as `--master` of client-go's `BuildConfigFromFlags`.

use std::path::{Path, PathBuf};

use http::Uri;
use http::uri::{InvalidUri, Scheme};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::BoxError;

use super::NoServer;
use super::error::{ClientError, shown_url, without_user};
use super::proxy::set_proxy;

/// Returns the configuration of `$KUBECONFIG`, else of `~/.kube/config`, else of the cluster that
/// the process runs in: client-go's order.
///
/// # Errors
///
/// Fails if a file exists and cannot be used, or if there is neither a file nor a cluster.
pub(super) async fn infer(options: &NoServer) -> Result<Config, ClientError> {
    let files = candidates();
    // A file that exists and is broken is an error, not a reason to continue the search.
    let exists = files.iter().any(|file| may_exist(file));
    if let (Some(_), false, Some(path)) = (&options.context, exists, files.first()) {
        return Err(ClientError::NoSuchFile { path: path.clone() });
    }
    if exists || options.context.is_some() {
        return match read(&files) {
            Ok(kubeconfig) => load(kubeconfig, files, options).await,
            Err(reason) => Err(ClientError::Kubeconfig { files, reason: Box::new(reason) }),
        };
    }
    if let Some(master) = &options.master {
        // A server alone needs no kubeconfig: it serves anonymous clients.
        tracing::debug!(%master, "no kubeconfig, connecting without credentials");
        return finish(Config::new(Uri::from_static("http://localhost")), options);
    }
    let config = Config::infer()
        .await
        .map_err(|reason| ClientError::NoKubeconfig { tried: files, reason: Box::new(reason) })?;
    finish(config, options)
}

/// Returns the configuration of the file at `path`.
///
/// # Errors
///
/// Fails if the file is missing or cannot be used.
pub(super) async fn from_file(path: &Path, options: &NoServer) -> Result<Config, ClientError> {
    if !may_exist(path) {
        return Err(ClientError::NoSuchFile { path: path.to_owned() });
    }
    let files = vec![path.to_owned()];
    match Kubeconfig::read_from(path) {
        Ok(kubeconfig) => load(kubeconfig, files, options).await,
        Err(reason) => Err(ClientError::Kubeconfig { files, reason: Box::new(reason) }),
    }
}

/// Returns the configuration of the selected context, or of the current one.
///
/// # Errors
///
/// `NoSuchContext` with the known contexts, or `Kubeconfig` with the files and the reason.
async fn load(
    kubeconfig: Kubeconfig,
    files: Vec<PathBuf>,
    options: &NoServer,
) -> Result<Config, ClientError> {
    let known = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    let context = options.context.clone();
    let authorities = authority_file(&kubeconfig, context.as_deref());
    let options_of_kube = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    match Config::from_custom_kubeconfig(kubeconfig, &options_of_kube).await {
        Ok(mut config) => {
            config.root_cert_file = authorities;
            finish(config, options)
        }
        Err(KubeconfigError::LoadContext(context)) => {
            Err(ClientError::NoSuchContext { context, files, known })
        }
        Err(reason) => Err(ClientError::Kubeconfig { files, reason: Box::new(reason) }),
    }
}

/// Applies the options of the builder and the proxy of the environment.
///
/// # Errors
///
/// If the URL of the option `master` or of a proxy is invalid.
fn finish(mut config: Config, options: &NoServer) -> Result<Config, ClientError> {
    let setup = |config: &Config, reason: BoxError| ClientError::Setup {
        server: shown_url(&config.cluster_url),
        reason,
    };
    if let Some(url) = &options.master {
        let invalid = |error| format!("invalid URL {:?}: {error}", without_user(url));
        config.cluster_url =
            url.parse().map_err(|error: InvalidUri| setup(&config, invalid(error).into()))?;
    }
    complete_url(&mut config)?;
    let proxied = set_proxy(&mut config, &|name| std::env::var(name).ok());
    proxied.map_err(|reason| setup(&config, reason))?;
    Ok(config)
}

/// Adds the scheme to a server that is a host, with or without a port: `https` if the configuration
/// has settings of TLS, otherwise `http`, as client-go.
///
/// # Errors
///
/// If the URL has no host.
pub(super) fn complete_url(config: &mut Config) -> Result<(), ClientError> {
    let url = &config.cluster_url;
    if url.scheme().is_some() {
        return Ok(());
    }
    let invalid = || ClientError::Setup {
        server: shown_url(url),
        reason: format!("host must be a URL or a host:port pair: {:?}", url.to_string()).into(),
    };
    let user = &config.auth_info;
    let has_tls = config.accept_invalid_certs
        || config.root_cert.is_some()
        || config.root_cert_file.is_some()
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    let scheme = if has_tls { Scheme::HTTPS } else { Scheme::HTTP };
    let authority = url.authority().ok_or_else(invalid)?.clone();
    let parts = Uri::builder().scheme(scheme).authority(authority).path_and_query("/");
    config.cluster_url = parts.build().map_err(|_| invalid())?;
    Ok(())
}

/// Returns the file of the cluster's certificate authorities, which kube-client reads once.
///
/// Embedded text comes before a file, as in client-go. With a file, TLS reads it again at each
/// handshake.
fn authority_file(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<PathBuf> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let context = kubeconfig.contexts.iter().find(|context| context.name == name)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = kubeconfig.clusters.iter().find(|named| named.name == *cluster)?;
    let cluster = cluster.cluster.as_ref()?;
    let has_text = cluster.certificate_authority_data.as_ref().is_some_and(|text| !text.is_empty());
    let file = cluster.certificate_authority.as_ref().filter(|file| !file.is_empty() && !has_text);
    file.map(PathBuf::from)
}

/// Reads and merges the files that exist, as client-go. kube-client refuses a list with a file that
/// does not.
///
/// # Errors
///
/// If none exists, one cannot be read, or they do not fit each other.
fn read(files: &[PathBuf]) -> Result<Kubeconfig, KubeconfigError> {
    let mut existing = files.iter().filter(|file| may_exist(file)).peekable();
    if existing.peek().is_none() {
        return Kubeconfig::read();
    }
    existing.try_fold(Kubeconfig::default(), |merged, file| {
        Kubeconfig::read_from(file).and_then(|next| merged.merge(next))
    })
}

/// Returns false if there is certainly no such file. One in a folder that may not be read exists.
fn may_exist(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}

/// Returns the files that are searched for, in the order in which they are merged.
///
/// Empty entries of `$KUBECONFIG` are skipped. An empty variable counts as not set.
fn candidates() -> Vec<PathBuf> {
    match std::env::var_os("KUBECONFIG") {
        Some(paths) if !paths.is_empty() => {
            std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect()
        }
        _ => {
            std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_of_the_list_that_does_not_exist_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["missing", "one", "other"].map(|name| folder.path().join(name));
        let context = |name| {
            format!(r#"{{"current-context": "{name}", "contexts": [{{"name": "{name}"}}]}}"#)
        };
        fs::write(&files[1], context("one")).unwrap();
        fs::write(&files[2], context("other")).unwrap();
        let merged = read(&files).unwrap();
        assert_eq!(merged.current_context.as_deref(), Some("one"));
        let names = merged.contexts.iter().map(|context| context.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["one", "other"]);
        fs::write(&files[2], "{").unwrap();
        read(&files).unwrap_err();
    }

    #[tokio::test]
    async fn file_that_cannot_be_looked_at_is_no_missing_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().join("kubeconfig");
        let error = from_file(&path, &NoServer::default()).await.unwrap_err();
        assert!(matches!(error, ClientError::Kubeconfig { .. }), "{error}");
    }
}
