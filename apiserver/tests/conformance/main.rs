//! The conformance suite: plays the exchanges in `apiserver/conformance`, recorded from a real
//! kube-apiserver, on the embedded server and on a live kube-apiserver. Each exchange and server is
//! a test.
//!
//! `HOMEOSTAT_RECORD=all` (or the names of scripts) records them. See
//! `apiserver/conformance/README.md`.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

mod altered;
mod differences;
mod discovery;
mod headers;
mod media;
mod names;
mod normal;
mod pinned;
mod play;
mod print;
mod record;
mod runner;
mod sampled;
mod script;
mod server;
mod suite;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Ok(wanted) = env::var("HOMEOSTAT_RECORD") {
        return match record::record(&wanted) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => panic!("{error}"),
        };
    }
    let arguments = Arguments::from_args();
    let suite = Arc::new(suite::Suite::load(&arguments).unwrap());
    let mut trials = runner::trials();
    trials.extend(suite::Suite::trials(&suite));
    libtest_mimic::run(&arguments, trials).exit_code()
}
