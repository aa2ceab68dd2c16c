//! Where etcd and kube-apiserver are on this machine.

use std::{env, ffi::OsString, path::PathBuf};

/// The cache folder that `control-plane/build.sh` fills, below `$XDG_CACHE_HOME` or `~/.cache`.
/// A test compares it with the script.
const CACHE: &str = "homeostat/control-plane/kubernetes-v1.37.1-etcd-v3.7.0";

/// The programs a [`ControlPlane`](super::ControlPlane) runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// Full path of etcd.
    pub etcd: PathBuf,
    /// Full path of kube-apiserver.
    pub kube_apiserver: PathBuf,
}

/// A program is in none of the places where it is looked for; the message says which command
/// builds it.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{program} is not on this machine (looked for {}); build it with \
     `apiserver/control-plane/build.sh`, or set KUBEBUILDER_ASSETS to the folder that holds it",
    list(looked)
)]
pub struct MissingBinaries {
    program: &'static str,
    looked: Vec<PathBuf>,
}

// === impl Binaries ===

impl Binaries {
    /// Looks, for each program, in `TEST_ASSET_ETCD` or `TEST_ASSET_KUBE_APISERVER` (full paths),
    /// then in the folder `KUBEBUILDER_ASSETS`, then in the cache of `control-plane/build.sh`.
    ///
    /// # Errors
    ///
    /// A program is in none of them.
    pub fn find() -> Result<Self, MissingBinaries> {
        Self::find_with(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn find_with(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, MissingBinaries> {
        Ok(Self {
            etcd: find_one("etcd", "TEST_ASSET_ETCD", &var)?,
            kube_apiserver: find_one("kube-apiserver", "TEST_ASSET_KUBE_APISERVER", &var)?,
        })
    }
}

/// The first place that holds `program`. A place that is named but empty is not an error by itself:
/// `KUBEBUILDER_ASSETS` may hold only one of the two.
fn find_one(
    program: &'static str,
    full_path: &str,
    var: &impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, MissingBinaries> {
    let cache = var("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let looked: Vec<PathBuf> = [
        var(full_path).map(PathBuf::from),
        var("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join(program)),
        cache.map(|folder| folder.join(CACHE).join(program)),
    ]
    .into_iter()
    .flatten()
    .collect();
    match looked.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(MissingBinaries { program, looked }),
    }
}

fn list(looked: &[PathBuf]) -> String {
    if looked.is_empty() {
        return "nowhere: neither KUBEBUILDER_ASSETS nor HOME is set".to_owned();
    }
    looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn vars(pairs: &[(&str, &std::path::Path)]) -> impl Fn(&str) -> Option<OsString> {
        let pairs: Vec<(String, OsString)> =
            pairs.iter().map(|(k, v)| ((*k).to_owned(), v.as_os_str().to_owned())).collect();
        move |name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone())
    }

    #[test]
    fn a_full_path_wins_over_the_assets_folder_which_wins_over_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let assets = folder.path().join("assets");
        let cache = folder.path().join("cache");
        for place in [&assets, &cache.join(CACHE)] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join("etcd"), "").unwrap();
            fs::write(place.join("kube-apiserver"), "").unwrap();
        }
        let own = folder.path().join("my-etcd");
        fs::write(&own, "").unwrap();

        let found = Binaries::find_with(vars(&[
            ("TEST_ASSET_ETCD", &own),
            ("KUBEBUILDER_ASSETS", &assets),
            ("XDG_CACHE_HOME", &cache),
        ]))
        .unwrap();
        assert_eq!(found.etcd, own);
        assert_eq!(found.kube_apiserver, assets.join("kube-apiserver"));

        let found = Binaries::find_with(vars(&[("XDG_CACHE_HOME", &cache)])).unwrap();
        assert_eq!(found.etcd, cache.join(CACHE).join("etcd"));
    }

    #[test]
    fn what_is_missing_comes_with_the_command_that_builds_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Binaries::find_with(vars(&[("HOME", folder.path())])).unwrap_err();
        let message = missing.to_string();
        assert!(message.contains("apiserver/control-plane/build.sh"), "{message}");
        assert!(message.contains("KUBEBUILDER_ASSETS"), "{message}");
        assert!(message.contains(".cache/homeostat"), "{message}");
    }

    #[test]
    fn the_cache_folder_is_the_one_that_the_build_script_fills() {
        let script = include_str!("../../control-plane/build.sh");
        let value = |name: &str| {
            let line = script.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_else(|| panic!("build.sh sets no {name}")).to_owned()
        };
        let (kubernetes, etcd) = (value("kubernetes"), value("etcd"));
        assert!(CACHE.ends_with(&format!("kubernetes-{kubernetes}-etcd-{etcd}")));
        assert!(script.contains("/homeostat/control-plane"));
    }
}
