//! Finds etcd and kube-apiserver on this machine.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The cache directory of `control-plane/build.sh`, below `$XDG_CACHE_HOME` or `~/.cache`. A test
/// compares it with the script.
const CACHE: &str = "homeostat/control-plane/kubernetes-v1.37.1-etcd-v3.7.0";

/// The programs that a [`ControlPlane`](super::ControlPlane) runs.
///
/// # Examples
///
/// ```no_run
/// use homeostat_testing::control_plane::Binaries;
///
/// match Binaries::find() {
///     Ok(binaries) => println!("{}", binaries.kube_apiserver.display()),
///     Err(missing) => println!("test skipped: {missing}"),
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// Full path of etcd.
    pub etcd: PathBuf,
    /// Full path of kube-apiserver.
    pub kube_apiserver: PathBuf,
}

/// The error for a program that is in none of the search paths. Its message names the command that
/// builds it.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "{program} not found (searched: {}); build it with `apiserver/control-plane/build.sh`, or set \
     KUBEBUILDER_ASSETS to the directory that contains it",
    list(searched)
)]
pub struct MissingBinaries {
    program: &'static str,
    searched: Vec<PathBuf>,
}

// === impl Binaries ===

impl Binaries {
    /// Searches each program in `TEST_ASSET_ETCD` or `TEST_ASSET_KUBE_APISERVER` (full paths), then
    /// in the directory `KUBEBUILDER_ASSETS`, then in the cache of `control-plane/build.sh`.
    ///
    /// # Errors
    ///
    /// Returns an error if a program is in none of them.
    pub fn find() -> Result<Self, MissingBinaries> {
        Self::find_with(|name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// Returns the error of [`find`](Self::find) to a test that is ignored without the programs;
    /// `None` if they are there.
    ///
    /// # Panics
    ///
    /// Panics if a program is missing and `HOMEOSTAT_REQUIRE_CONTROL_PLANE` is set: such a test may
    /// not be ignored.
    #[track_caller]
    pub fn missing_for_tests() -> Option<MissingBinaries> {
        let missing = Self::find().err()?;
        assert!(!Self::is_required(), "{missing}");
        Some(missing)
    }

    /// Returns true if `HOMEOSTAT_REQUIRE_CONTROL_PLANE` is set: a test without its programs fails
    /// instead of being ignored.
    pub fn is_required() -> bool {
        env::var_os("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_some()
    }

    fn find_with(var: impl Fn(&str) -> Option<OsString>) -> Result<Self, MissingBinaries> {
        Ok(Self {
            etcd: find_one("etcd", "TEST_ASSET_ETCD", &var)?,
            kube_apiserver: find_one("kube-apiserver", "TEST_ASSET_KUBE_APISERVER", &var)?,
        })
    }
}

/// Returns the first search path that exists. A directory without the program is not an error:
/// `KUBEBUILDER_ASSETS` may contain only one of the two.
fn find_one(
    program: &'static str,
    full_path: &str,
    var: &impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, MissingBinaries> {
    let cache = var("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let searched: Vec<PathBuf> = [
        var(full_path).map(PathBuf::from),
        var("KUBEBUILDER_ASSETS").map(|folder| PathBuf::from(folder).join(program)),
        cache.map(|folder| folder.join(CACHE).join(program)),
    ]
    .into_iter()
    .flatten()
    .collect();
    match searched.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => Err(MissingBinaries { program, searched }),
    }
}

fn list(searched: &[PathBuf]) -> String {
    if searched.is_empty() {
        return "neither KUBEBUILDER_ASSETS nor HOME is set".to_owned();
    }
    searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
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
    fn full_path_is_preferred_to_the_assets_directory_and_to_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let assets = directory.path().join("assets");
        let cache = directory.path().join("cache");
        for place in [&assets, &cache.join(CACHE)] {
            fs::create_dir_all(place).unwrap();
            fs::write(place.join("etcd"), "").unwrap();
            fs::write(place.join("kube-apiserver"), "").unwrap();
        }
        let own = directory.path().join("my-etcd");
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
    fn missing_program_is_reported_with_the_command_that_builds_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = Binaries::find_with(vars(&[("HOME", directory.path())])).unwrap_err();
        let message = missing.to_string();
        assert!(message.contains("apiserver/control-plane/build.sh"), "{message}");
        assert!(message.contains("KUBEBUILDER_ASSETS"), "{message}");
        assert!(message.contains(".cache/homeostat"), "{message}");
    }

    #[test]
    fn cache_directory_matches_the_build_script() {
        let script = include_str!("../../../apiserver/control-plane/build.sh");
        let value = |name: &str| {
            let line = script.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.unwrap_or_else(|| panic!("build.sh sets no {name}")).to_owned()
        };
        let (kubernetes, etcd) = (value("kubernetes"), value("etcd"));
        assert!(CACHE.ends_with(&format!("kubernetes-{kubernetes}-etcd-{etcd}")));
        assert!(script.contains("/homeostat/control-plane"));
    }
}
