//! A copy of the repository in which mutants are applied.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::mutant::Mutant;

/// A copy of the repository.
#[derive(Debug)]
pub struct Tree {
    folder: PathBuf,
}

// === impl Tree ===

impl Tree {
    /// Copies the files of `root` to `folder`, except for those whose content is in `changes`.
    ///
    /// A file that is the same there already is left alone, so that Cargo does not compile it
    /// again. Files that Git ignores are not copied.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or written, or Git cannot list them.
    pub fn copy(
        root: &Path,
        folder: PathBuf,
        changes: &BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let tree = Self { folder };
        let mut kept = BTreeSet::new();
        for path in sources(root)? {
            // Git lists a file that was deleted, too, until that is committed.
            if !root.join(&path).exists() {
                continue;
            }
            let replaced = path.to_str().and_then(|path| changes.get(path));
            match replaced {
                Some(text) => tree.write(&path, text.as_bytes())?,
                None => tree.write(&path, &fs::read(root.join(&path))?)?,
            }
            // A script stays one that can be started.
            let permissions = fs::metadata(root.join(&path))?.permissions();
            fs::set_permissions(tree.folder.join(&path), permissions)?;
            kept.insert(path);
        }
        tree.remove_others(&tree.folder.clone(), &kept)?;
        Ok(tree)
    }

    fn remove_others(&self, folder: &Path, kept: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, kept)?;
            } else if !kept.contains(path.strip_prefix(&self.folder)?) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Returns the folder of the copy.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file of the copy, unless it has that content already.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(path);
        if fs::read(&path).is_ok_and(|there| there == content) {
            return Ok(());
        }
        let name = || path.display().to_string();
        fs::create_dir_all(path.parent().context("a file is in a folder")?).with_context(name)?;
        fs::write(&path, content).with_context(name)
    }
}

// === functions ===

/// Returns the files of the repository, from its root.
pub(crate) fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git")?;
    ensure!(list.status.success(), "git: {}", String::from_utf8_lossy(&list.stderr));
    let paths = list.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect())
}

/// Returns the content of the mutant's file with the mutant.
///
/// # Errors
///
/// Fails if the patch does not apply.
pub fn mutated(root: &Path, mutant: &Mutant) -> anyhow::Result<String> {
    let scratch = tempfile::tempdir()?;
    let file = scratch.path().join(&mutant.file);
    fs::create_dir_all(file.parent().context("a file is in a folder")?)?;
    fs::copy(root.join(&mutant.file), &file).with_context(|| mutant.file.clone())?;
    let applied = Command::new("git")
        .arg("apply")
        .arg(root.join(&mutant.patch))
        .current_dir(scratch.path())
        // Git would otherwise find a repository around the folder, and apply nothing.
        .env("GIT_CEILING_DIRECTORIES", std::env::temp_dir())
        .output()
        .context("git")?;
    ensure!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    Ok(fs::read_to_string(file)?)
}
