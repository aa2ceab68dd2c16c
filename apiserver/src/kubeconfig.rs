//! The kubeconfig file that the program writes, and takes away again.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, bail};

/// The first line of every file that is written here. A file without it is somebody else's.
const MARK: &str = "# Written by homeostat-apiserver, and removed when it ends.\n";

/// A kubeconfig file; dropping this removes it.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    content: String,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Writes it; replaces one that an earlier run has left, and nothing else.
    pub(crate) fn write(path: &Path, content: &str) -> anyhow::Result<Self> {
        let path = absolute(path).with_context(|| format!("{} is no path", path.display()))?;
        match fs::read_to_string(&path) {
            Ok(before) if !before.starts_with(MARK) => bail!(
                "{} is there already, and not written by this program: name another file with --kubeconfig",
                path.display()
            ),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot look at {}", path.display()));
            }
            _ => {}
        }
        let content = format!("{MARK}{content}");
        fs::write(&path, &content).with_context(|| {
            format!("cannot write {}: name another file with --kubeconfig", path.display())
        })?;
        Ok(Self { path, content })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // A second server may have taken the file over: then it is not ours any more.
        if fs::read_to_string(&self.path).is_ok_and(|content| content == self.content)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the kubeconfig");
        }
    }
}
