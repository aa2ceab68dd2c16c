//! Runs a controller program as a child process, to test its command line.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// Variables of the environment that change what a controller program connects to or logs.
const VARIABLES: [&str; 4] =
    ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "RUST_LOG"];

/// The time after which a program that still runs is killed.
const LONGEST_RUN: Duration = Duration::from_secs(60);

/// A controller program under test. It sees no cluster of the machine: no kubeconfig, no home
/// folder, and no variable of a pod. Its other variables are those of the test.
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
    /// Panics if the program cannot be started, or still runs after a minute: it is killed then.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_within(LONGEST_RUN, arguments)
    }

    #[track_caller]
    fn run_within(&self, limit: Duration, arguments: &[&str]) -> Output {
        let mut command = self.command();
        let command = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = command.spawn().and_then(|child| output_within(limit, child));
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

/// Waits for the end of a program, and reads what it writes meanwhile.
fn output_within(limit: Duration, mut child: Child) -> io::Result<Output> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both senders are dropped at the end of the output, which is the end of the program.
    let (sender, ended) = mpsc::channel::<()>();
    let other = sender.clone();
    thread::scope(|scope| {
        let stdout = scope.spawn(move || (read_all(stdout), sender).0);
        let stderr = scope.spawn(move || (read_all(stderr), other).0);
        let is_late = ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        if is_late {
            child.kill()?;
        }
        let status = child.wait()?;
        let (stdout, stderr) = (joined(stdout)?, joined(stderr)?);
        if is_late {
            let errors = String::from_utf8_lossy(&stderr);
            return Err(io::Error::other(format!("it still runs after {limit:?}: {errors}")));
        }
        Ok(Output { status, stdout, stderr })
    })
}

fn joined(reader: ScopedJoinHandle<'_, io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    reader.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")))
}

fn read_all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "cannot run /bin/sleep: it still runs after 50ms")]
    fn program_that_does_not_end_is_killed() {
        ProgramTest::new("/bin/sleep").run_within(Duration::from_millis(50), &["600"]);
    }

    #[test]
    fn long_output_is_read_while_the_program_runs() {
        let script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3";
        let output = ProgramTest::new("/bin/sh").run(&["-c", script]);
        assert_eq!((output.stdout.len(), output.stderr.len()), (300_000, 300_000));
        assert_eq!(output.status.code(), Some(3));
    }
}
