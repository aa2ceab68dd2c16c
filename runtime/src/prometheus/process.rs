//! The metrics of the process itself: CPU time, memory, files, start. The names are those of
//! Prometheus' client libraries, which Kubernetes' components export and dashboards use.
//!
//! The `metrics` facade has no counter with a fraction, so these lines are written as text. Linux
//! alone has the files; elsewhere the metrics are missing.

use std::fmt::Write as _;
use std::fs;

/// The clock ticks per second of the times in `/proc`: `USER_HZ`, the same on all systems since
/// Linux 2.4.
const TICKS_PER_SECOND: f64 = 100.0;

/// Files in which Linux describes a process.
#[derive(Debug, Default)]
struct Files {
    /// `/proc/self/stat`.
    stat: String,
    /// `/proc/self/status`.
    status: String,
    /// `/proc/self/limits`.
    limits: String,
    /// `/proc/stat`.
    machine: String,
    /// The number of entries of `/proc/self/fd`.
    open: Option<usize>,
}

/// Returns the metrics in Prometheus' text format; empty where the system has no such files.
pub(super) fn render() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let files = Files {
        stat: read("/proc/self/stat"),
        status: read("/proc/self/status"),
        limits: read("/proc/self/limits"),
        machine: read("/proc/stat"),
        // The directory that is being read is one of the files.
        open: fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1)),
    };
    files.render()
}

// === impl Files ===

impl Files {
    /// A number that cannot be read is left out.
    fn render(&self) -> String {
        // The fields follow the name of the program, which may have spaces and brackets.
        let fields = self.stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // proc(5) counts from 1, and the first field here is its third.
        let seconds = |n: usize| Some(fields.get(n - 3)?.parse::<f64>().ok()? / TICKS_PER_SECOND);
        let cpu = seconds(14).zip(seconds(15)).map(|(user, system)| user + system);
        let booted = number(&self.machine, "btime");
        let started = booted.zip(seconds(22)).map(|(booted, after)| booted + after);
        let bytes = |name| number(&self.status, name).map(|kib| kib * 1024.0);
        #[expect(clippy::cast_precision_loss, reason = "no process has 2^52 open files")]
        let open = self.open.map(|files| files as f64);
        let limit = number(&self.limits, "Max open files");
        let lines = [
            ("process_cpu_seconds_total", "counter", "Total user and system CPU time", cpu),
            ("process_max_fds", "gauge", "Limit of open files", limit),
            ("process_open_fds", "gauge", "Number of open files", open),
            ("process_resident_memory_bytes", "gauge", "Resident memory", bytes("VmRSS:")),
            ("process_start_time_seconds", "gauge", "Start, in seconds since 1970", started),
            ("process_virtual_memory_bytes", "gauge", "Virtual memory", bytes("VmSize:")),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in lines {
            let Some(value) = value else { continue };
            // Writing to a string does not fail.
            write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n")
                .unwrap_or_default();
        }
        text
    }
}

/// Returns the first number after `name` at the start of a line.
fn number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_described_in_seconds_and_bytes() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 2 0 1000 1 1 1";
        let limits = "Limit Soft Hard\nMax open files            1024                 4096 files";
        let files = Files {
            stat: stat.to_owned(),
            status: "VmSize:\t    8000 kB\nVmRSS:\t    2048 kB\n".to_owned(),
            limits: limits.to_owned(),
            machine: "cpu 1 2\nbtime 1700000000\n".to_owned(),
            open: Some(7),
        };
        let text = files.render();
        for line in [
            "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 3\n",
            "process_max_fds 1024\n",
            "process_open_fds 7\n",
            "process_resident_memory_bytes 2097152\n",
            "process_start_time_seconds 1700000010\n",
            "process_virtual_memory_bytes 8192000\n",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
        assert_eq!(Files::default().render(), "", "nothing can be read");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_uses_memory_and_files() {
        let text = render();
        let value = |name| number(&text, name).unwrap_or_default();
        assert!(value("process_resident_memory_bytes ") > 1e5, "{text}");
        assert!(value("process_open_fds ") >= 3.0, "{text}");
        assert!(value("process_start_time_seconds ") > 1.6e9, "{text}");
    }
}
