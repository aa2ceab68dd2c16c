//! A mutant: a patch that breaks one promise, and the test that must fail.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, bail, ensure};

/// A patch that breaks one promise of one file.
#[derive(Debug)]
pub struct Mutant {
    /// Name of the patch, without its extension.
    pub name: String,
    /// Path of the patch.
    pub patch: PathBuf,
    /// The file that it changes, from the root of the repository.
    pub file: String,
    /// The test that must fail.
    pub test: Test,
}

/// A filter for the tests of one test program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// The program.
    pub program: Program,
    /// Part of the names of the tests, as `cargo test` takes it.
    pub filter: String,
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// True if it is compiled for loom.
    pub is_loom: bool,
    /// Package that it tests.
    pub package: String,
    /// Name of the file in `tests`, or `None` for the unit tests of the library.
    pub file: Option<String>,
}

// === impl Mutant ===

impl Mutant {
    /// Reads a patch.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, its first line names no test, or it does not change one
    /// file.
    pub fn read(patch: &Path) -> anyhow::Result<Self> {
        let context = || patch.display().to_string();
        let text = fs::read_to_string(patch).with_context(context)?;
        Self::parse(patch, &text).with_context(context)
    }

    fn parse(patch: &Path, text: &str) -> anyhow::Result<Self> {
        let header = text.lines().next().and_then(|line| line.strip_prefix("# caught by: "));
        let header = header.context("the first line must be \"# caught by: TEST\"")?;
        let mut files = text.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        let file = files.next().context("no line starts with \"+++ b/\"")?;
        ensure!(files.next().is_none(), "a mutant changes one file");
        let name = patch.file_stem().and_then(OsStr::to_str).context("the name is not UTF-8")?;
        Ok(Self {
            name: name.to_owned(),
            patch: patch.to_owned(),
            file: file.to_owned(),
            test: Test::parse(header)?,
        })
    }
}

// === impl Test ===

impl Test {
    fn parse(header: &str) -> anyhow::Result<Self> {
        let mut words: Vec<&str> = header.split_whitespace().collect();
        let is_loom = words.first() == Some(&"loom");
        if is_loom {
            words.remove(0);
        }
        let (package, file, filter) = match words[..] {
            ["-p", package, "--lib", filter] => (package, None, filter),
            ["-p", package, "--test", file, filter] => (package, Some(file.to_owned()), filter),
            _ => bail!("`{header}` must be `[loom] -p PACKAGE (--lib | --test FILE) FILTER`"),
        };
        let program = Program { is_loom, package: package.to_owned(), file };
        Ok(Self { program, filter: filter.to_owned() })
    }
}

/// Writes the package, the program and the filter.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { package, file, .. } = &self.program;
        write!(f, "{package} {} {}", file.as_deref().unwrap_or("--lib"), self.filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Mutant, String> {
        Mutant::parse(Path::new("mutants/name.patch"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn header_names_program_and_filter() {
        let text = "# caught by: loom -p a --test loom some_test\n--- a/x.rs\n+++ b/x.rs\n";
        let mutant = parse(text).unwrap();
        assert_eq!((mutant.name.as_str(), mutant.file.as_str()), ("name", "x.rs"));
        let program =
            Program { is_loom: true, package: "a".to_owned(), file: Some("loom".to_owned()) };
        assert_eq!(mutant.test, Test { program, filter: "some_test".to_owned() });
        let unit = parse("# caught by: -p a --lib some_test\n+++ b/x.rs\n").unwrap().test;
        assert_eq!(unit.program, Program { is_loom: false, package: "a".to_owned(), file: None });
    }

    #[test]
    fn patch_without_test_or_file_is_an_error_that_says_what_is_missing() {
        let error = |text| parse(text).unwrap_err();
        assert!(error("--- a/x.rs\n+++ b/x.rs\n").contains("# caught by: TEST"));
        assert!(error("# caught by: -p a some_test\n+++ b/x.rs\n").contains("--test FILE"));
        assert!(error("# caught by: -p a --lib some_test\n").contains("+++ b/"));
        let two = "# caught by: -p a --lib some_test\n+++ b/x.rs\n+++ b/y.rs\n";
        assert!(error(two).contains("one file"));
    }
}
