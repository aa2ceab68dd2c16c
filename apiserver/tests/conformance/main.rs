//! The exchanges in `apiserver/conformance`, recorded from a real kube-apiserver, put to the embedded server and to a
//! live one: one test for each exchange and server.
//!
//! `HOMEOSTAT_RECORD=all` (or the name of a script) records them anew. `apiserver/conformance/README.md` tells the rest.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

mod differences;
mod names;
mod normal;
mod play;
mod print;
mod record;
mod runner;
mod script;
mod server;
mod suite;

use std::{env, process::ExitCode, sync::Arc};

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
