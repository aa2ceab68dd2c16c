//! What a process has used so far, as the kernel counts it.

use std::fs;

use anyhow::Context as _;

/// CPU time and memory of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User time, in seconds, in steps of 10 ms.
    pub user: f64,
    /// System time, in seconds, in steps of 10 ms.
    pub system: f64,
    /// The most memory that was resident at once, in MB (10^6 bytes).
    pub peak_rss: f64,
}

impl Usage {
    /// Reads the usage of the process `pid`.
    ///
    /// # Errors
    ///
    /// When there is no such process, or this is not Linux.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("reading /proc")?;
        // The command's name may hold spaces: what counts begins behind its closing parenthesis.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has a command")?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
        let mut ticks = || ticks.next().context("utime and stime");
        // Linux counts CPU time in hundredths of a second on every machine that this runs on.
        let (user, system) = (ticks()?? / 100.0, ticks()?? / 100.0);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("reading /proc")?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = peak.and_then(|peak| peak.split_whitespace().next());
        let kibibytes: f64 = kibibytes.context("VmHWM")?.parse()?;
        Ok(Self { user, system, peak_rss: kibibytes * 1024.0 / 1e6 })
    }

    /// User and system time, in seconds.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}
