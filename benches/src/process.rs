//! CPU time and memory of a process, from `/proc`.

use std::fs;

use anyhow::Context as _;

/// CPU time and memory of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User time, in seconds, in steps of 10 ms.
    pub user: f64,
    /// System time, in seconds, in steps of 10 ms.
    pub system: f64,
    /// Resident memory, in MB (10^6 bytes).
    pub rss: f64,
    /// The peak of resident memory, in MB (10^6 bytes).
    pub peak_rss: f64,
}

impl Usage {
    /// Reads the usage of the process `pid`.
    ///
    /// # Errors
    ///
    /// Returns an error if the process does not exist, or if the system is not Linux.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("reading /proc")?;
        // The command's name may contain spaces: the fields start after its closing parenthesis.
        let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat has a command")?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
        let mut ticks = || ticks.next().context("utime and stime");
        // Linux counts CPU time in hundredths of a second on every machine that this runs on.
        let (user, system) = (ticks()?? / 100.0, ticks()?? / 100.0);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("reading /proc")?;
        let megabytes = |name: &str| -> anyhow::Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.and_then(|line| line.split_whitespace().next());
            let kibibytes: f64 = kibibytes.with_context(|| name.to_owned())?.parse()?;
            Ok(kibibytes * 1024.0 / 1e6)
        };
        Ok(Self { user, system, rss: megabytes("VmRSS:")?, peak_rss: megabytes("VmHWM:")? })
    }

    /// Returns the sum of user and system time, in seconds.
    pub fn cpu(&self) -> f64 {
        self.user + self.system
    }
}
