//! A child process that is killed with its owner.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::error::ControlPlaneError;

/// Number of bytes of a log that an error contains: about the last 20 lines.
const LOG_TAIL: u64 = 4096;

/// Kills the child when this process has ended, and removes the directory of its log: the owner of
/// the directory is gone. The standard input of the script is a pipe from this process, so `read`
/// returns when this process ends for any reason. The child writes no file a second after its end.
const WATCHDOG: &str = r#"read -r _; kill -KILL "$1"; sleep 1; rm -rf -- "$DIRECTORY""#;

/// A child process whose output goes to a log. Dropping it kills and reaps the child.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    log: PathBuf,
    child: Child,
    /// Ends before `child` is reaped, since the process id may be reused after that. `None` if
    /// there is no `sh`.
    watchdog: Option<Child>,
    /// The exit status, once the child has been reaped.
    ended: Option<ExitStatus>,
}

// === impl Process ===

impl Process {
    /// Runs `program` and appends its output to `log`, whose directory is that of the process.
    pub(super) fn spawn(
        name: &'static str,
        program: &Path,
        args: &[String],
        log: PathBuf,
    ) -> Result<Self, ControlPlaneError> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|source| ControlPlaneError::Directory { source })?;
        let spawn = || {
            Command::new(program)
                .args(args)
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output)
                .process_group(0)
                .spawn()
        };
        let child = spawn()
            .map_err(|source| ControlPlaneError::Spawn { program: program.to_owned(), source })?;
        let watchdog = log.parent().and_then(|directory| watchdog(child.id(), directory));
        Ok(Self { name, log, child, watchdog, ended: None })
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Returns an error with the end of the log if the child has ended.
    pub(super) fn check_running(&mut self) -> Result<(), ControlPlaneError> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.stop_watchdog();
            self.ended = Some(status);
        }
        match self.ended {
            None => Ok(()),
            Some(status) => {
                Err(ControlPlaneError::Ended { program: self.name, status, log: self.log_tail() })
            }
        }
    }

    /// Kills the child with SIGKILL and waits for its end, a few milliseconds.
    pub(super) fn kill(&mut self) {
        self.stop_watchdog();
        if self.ended.is_none() {
            // It fails only if the child has ended already; `wait` reaps it.
            drop(self.child.kill());
            self.ended = self.child.wait().ok();
        }
    }

    /// Returns the last lines of the log, or the error of reading it.
    pub(super) fn log_tail(&self) -> String {
        read_tail(&self.log).unwrap_or_else(|error| format!("(cannot read the log: {error})"))
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn stop_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            drop(watchdog.kill());
            drop(watchdog.wait());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn watchdog(child: u32, directory: &Path) -> Option<Child> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "watchdog", &child.to_string()])
        // No argument: who looks for processes of the directory should find its programs alone.
        .env("DIRECTORY", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()
}

fn read_tail(log: &Path) -> io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    // The first line is usually incomplete.
    Ok(match tail.split_once('\n') {
        Some((_, rest)) if length > LOG_TAIL => rest.to_owned(),
        _ => tail.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, log: PathBuf) -> Process {
        let args = ["-c".to_owned(), script.to_owned()];
        Process::spawn("sh", Path::new("/bin/sh"), &args, log).unwrap()
    }

    #[test]
    fn ended_program_is_reported_with_the_end_of_its_log() {
        let directory = tempfile::tempdir().unwrap();
        let script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 3";
        let mut process = shell(script, directory.path().join("log"));
        let status = process.child.wait().unwrap();
        assert_eq!(status.code(), Some(3));
        let error = process.check_running().unwrap_err().to_string();
        assert!(error.contains("line 1999"), "{error}");
        assert!(!error.contains("line 100\n"), "{error}");
        assert!(process.watchdog.is_none(), "watchdog outlives the child");
    }

    #[test]
    fn watchdog_kills_the_child_when_its_pipe_closes() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 600", directory.path().join("log"));
        // The kernel closes the pipe of a process that has ended.
        drop(process.watchdog.as_mut().unwrap().stdin.take());
        let status = process.child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[test]
    fn watchdog_removes_the_directory_of_a_process_that_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control-plane");
        std::fs::create_dir(&path).unwrap();
        let mut process = shell("exec sleep 600", path.join("log"));
        let mut watchdog = process.watchdog.take().unwrap();
        drop(watchdog.stdin.take());
        assert!(watchdog.wait().unwrap().success());
        assert!(!path.exists());
        process.child.wait().unwrap();
    }

    #[test]
    fn second_kill_has_no_effect() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 600", directory.path().join("log"));
        process.kill();
        process.kill();
        assert!(process.check_running().is_err());
    }
}
