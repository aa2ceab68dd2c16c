//! Finds out which server to talk to.

use std::path::{Path, PathBuf};

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};

use super::error::ClientError;

/// `$KUBECONFIG`, else `~/.kube/config`, else the cluster around this process.
pub(super) async fn infer() -> Result<Config, ClientError> {
    let files = candidates();
    if files.iter().any(|file| file.exists()) {
        // A file that is there but broken is a mistake to report, not a reason to look elsewhere.
        return Config::from_kubeconfig(&KubeConfigOptions::default())
            .await
            .map_err(|source| ClientError::Kubeconfig { files, source: Box::new(source) });
    }
    Config::infer()
        .await
        .map_err(|source| ClientError::NoKubeconfig { tried: files, source: Box::new(source) })
}

pub(super) async fn from_file(path: &Path) -> Result<Config, ClientError> {
    if !path.exists() {
        return Err(ClientError::NoSuchFile { path: path.to_owned() });
    }
    let unusable =
        |source| ClientError::Kubeconfig { files: vec![path.to_owned()], source: Box::new(source) };
    let kubeconfig = Kubeconfig::read_from(path).map_err(unusable)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(unusable)
}

/// The files that are looked for, in the order in which they are merged.
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
