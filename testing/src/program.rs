//! Runs a controller program as a child process, to test its command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Variables of the environment that change what a controller program connects to or logs.
const VARIABLES: [&str; 4] =
    ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "RUST_LOG"];

/// A controller program under test. It sees no cluster of the machine: no kubeconfig, no home
/// folder, and no variable of a pod.
///
/// # Examples
///
/// In an integration test Cargo names the program: `env!("CARGO_BIN_EXE_my-controller")`.
///
/// ```
/// use homeostat_testing::ProgramTest;
///
/// let program = ProgramTest::new("/bin/cat");
/// program.fails_with(&["/nonexistent/file"], &["/nonexistent/file"]);
/// ```
#[derive(Debug, Clone)]
pub struct ProgramTest {
    path: PathBuf,
}

// === impl ProgramTest ===

impl ProgramTest {
    /// Returns the program at `path`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Returns a command that runs the program, for a test that reads its output while it runs.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.env("HOME", "/nonexistent").env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        let output = self.command().args(arguments).output();
        output.unwrap_or_else(|error| panic!("cannot run {}: {error}", self.path.display()))
    }

    /// Runs the program, and checks that it fails, without a panic, and that its error output has
    /// all of `texts`.
    ///
    /// # Panics
    ///
    /// Panics with the error output if one of these is not so.
    #[track_caller]
    pub fn fails_with(&self, arguments: &[&str], texts: &[&str]) {
        assert_failed(&self.run(arguments), texts);
    }
}

/// Checks that a program has failed, without a panic, and that its error output has all of `texts`.
///
/// # Panics
///
/// Panics with the error output if one of these is not so.
#[track_caller]
pub fn assert_failed(output: &Output, texts: &[&str]) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "the program succeeded: {errors}");
    for text in texts {
        assert!(errors.contains(text), "{text:?} is not in: {errors}");
    }
    assert!(!errors.contains("panicked"), "{errors}");
}
