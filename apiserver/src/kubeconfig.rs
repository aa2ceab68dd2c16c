//! The kubeconfig file that the program writes at its start and removes at its end.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, bail};

/// The first line of every file that this program writes. It never overwrites a file without it.
const MARK: &str = "# Written by homeostat-apiserver, and removed when it ends.\n";

/// A kubeconfig file; dropping this removes it.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    content: String,
}

// === impl Kubeconfig ===

impl Kubeconfig {
    /// Writes the file. It may replace a file that an earlier run left, but no other.
    pub(crate) fn write(path: &Path, content: &str) -> anyhow::Result<Self> {
        let path =
            absolute(path).with_context(|| format!("{} is not a valid path", path.display()))?;
        match fs::read_to_string(&path) {
            Ok(before) if !before.starts_with(MARK) => bail!(
                "{} exists and was not written by this program: \
                 name another file with --kubeconfig",
                path.display()
            ),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
            _ => {}
        }
        let content = format!("{MARK}{content}");
        write_private(&path, &content).with_context(|| {
            format!("cannot write {}: name another file with --kubeconfig", path.display())
        })?;
        Ok(Self { path, content })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes a file that only the current user can read: it may have a token.
fn write_private(path: &Path, content: &str) -> io::Result<()> {
    if path.exists() {
        fs::remove_file(path)?;
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content.as_bytes())
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Another server may have replaced the file since; then that server removes it.
        if fs::read_to_string(&self.path).is_ok_and(|content| content == self.content)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "failed to remove the kubeconfig");
        }
    }
}
