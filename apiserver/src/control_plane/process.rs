//! A child process that does not outlive its owner.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use super::error::ControlPlaneError;

/// How much of a log an error carries: about the last twenty lines.
const LOG_TAIL: u64 = 4096;

/// Kills the child when this process is gone: its standard input is a pipe whose other end only this
/// process holds, so `read` returns when that end is closed, however this process died.
const WATCHDOG: &str = r#"read -r _; kill -KILL "$1""#;

/// A child whose output goes to a log; dropping it kills and reaps the child.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    log: PathBuf,
    child: Child,
    /// Runs as long as `child` has not been reaped, never longer: the process id it would kill might
    /// belong to somebody else by then. None when there is no `sh` here.
    watchdog: Option<Child>,
    /// Set when the child has been reaped.
    ended: Option<ExitStatus>,
}

// === impl Process ===

impl Process {
    /// Runs `program`; its output is appended to `log`.
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
            .map_err(|source| ControlPlaneError::Folder { source })?;
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
        let watchdog = watchdog(child.id());
        Ok(Self { name, log, child, watchdog, ended: None })
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// Fails once the child has ended, with the end of its log.
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

    /// Kills the child and waits until it is gone: some milliseconds, as SIGKILL is not negotiated.
    pub(super) fn kill(&mut self) {
        self.stop_watchdog();
        if self.ended.is_none() {
            // The only error is that it has ended already, and then `wait` reaps it.
            drop(self.child.kill());
            self.ended = self.child.wait().ok();
        }
    }

    /// The last lines of the log, or why there are none.
    pub(super) fn log_tail(&self) -> String {
        read_tail(&self.log).unwrap_or_else(|error| format!("(no log: {error})"))
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

fn watchdog(child: u32) -> Option<Child> {
    Command::new("sh")
        .args(["-c", WATCHDOG, "watchdog", &child.to_string()])
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
    // The first line is most likely cut.
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
    fn a_program_that_ended_is_reported_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 3";
        let mut process = shell(script, folder.path().join("log"));
        let status = process.child.wait().unwrap();
        assert_eq!(status.code(), Some(3));
        let error = process.check_running().unwrap_err().to_string();
        assert!(error.contains("line 1999"), "{error}");
        assert!(!error.contains("line 100\n"), "{error}");
        assert!(process.watchdog.is_none(), "the watchdog ends with the child");
    }

    #[test]
    fn the_watchdog_kills_the_child_when_its_pipe_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 600", folder.path().join("log"));
        // What the kernel does with the pipe of a process that is gone.
        drop(process.watchdog.as_mut().unwrap().stdin.take());
        let status = process.child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[test]
    fn killing_twice_is_killing_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell("exec sleep 600", folder.path().join("log"));
        process.kill();
        process.kill();
        assert!(process.check_running().is_err());
    }
}
