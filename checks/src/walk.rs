//! The files of the repository that people write.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// One file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the repository's root, with `/` between its parts.
    pub path: String,
    /// Content.
    pub text: String,
}

/// Folders that hold no prose of this project: build output, and data recorded from other programs.
const SKIPPED: &[&str] = &["target", ".git", "fixtures", "transcripts", "recorded"];

/// The cases of the language check: they break its rules.
const CASES: &str = "checks/src/language/tests.rs";

/// File name extensions that are read. Files without one are read when they start with `#!`.
const EXTENSIONS: &[&str] = &["rs", "md", "go", "sh", "toml", "yaml", "yml"];

/// Returns the root of the repository.
///
/// # Panics
///
/// Panics if the crate has been moved out of the repository's top level.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("the crate is a folder of the repository").to_path_buf()
}

/// Returns every file below `path` (a file or a folder) that people write, in order of its path.
///
/// # Errors
///
/// Fails if a file cannot be read, or is not UTF-8.
pub fn sources(path: &Path) -> io::Result<Vec<Source>> {
    let root = root().canonicalize()?;
    let mut paths = Vec::new();
    collect(&path.canonicalize()?, &mut paths)?;
    paths.sort();
    let mut sources = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        if path.extension().is_some() || text.starts_with("#!") {
            let relative = path.strip_prefix(&root).unwrap_or(&path);
            let path = relative.to_string_lossy().replace('\\', "/");
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name) {
                collect(&path, found)?;
            }
        } else if is_prose(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns true for files that people write.
fn is_prose(path: &Path) -> bool {
    match path.extension().and_then(OsStr::to_str) {
        Some(extension) => EXTENSIONS.contains(&extension) && !path.ends_with(CASES),
        None => {
            path.components().any(|part| part.as_os_str() == ".ci") || path.ends_with("justfile")
        }
    }
}
