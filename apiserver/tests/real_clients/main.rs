//! Clients that others wrote, against the server behind its socket: kubectl, client-go and kube-runtime.
//!
//! What kubectl prints is compared with what it prints for a real kube-apiserver. client-go says itself what it expects,
//! and says it to both servers. On a machine without the real programs, or without Go, the tests are `ignored`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod client_go;
mod cluster;
mod kube_runtime;
mod kubectl;

use std::{env, path::PathBuf};

use homeostat_apiserver::control_plane::Binaries;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// What a test needs that a machine may not have.
struct Programs {
    kubectl: PathBuf,
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Each test has servers of its own, and a real one keeps a core busy while it starts.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let mut trials = kube_runtime::trials();
    trials.extend(client_go::trials());
    trials.extend(kubectl::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test that needs the real programs; ignored where they are not, unless `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1`.
fn with_programs(
    name: &str,
    test: impl FnOnce(Programs) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || match Programs::find() {
        Ok(programs) => test(programs).map(|()| Completion::Completed),
        Err(missing) => {
            if env::var("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_ok_and(|value| value == "1") {
                return Err(missing.into());
            }
            Ok(Completion::ignored_with(missing))
        }
    })
}

// === impl Programs ===

impl Programs {
    /// kubectl is where the other programs are, or where `TEST_ASSET_KUBECTL` says.
    fn find() -> Result<Self, String> {
        let binaries = Binaries::find().map_err(|missing| missing.to_string())?;
        let kubectl = env::var_os("TEST_ASSET_KUBECTL")
            .map_or_else(|| binaries.kube_apiserver.with_file_name("kubectl"), PathBuf::from);
        if kubectl.is_file() {
            Ok(Self { kubectl })
        } else {
            Err(format!(
                "kubectl is not at {}; build it with `apiserver/control-plane/build.sh`, or name it in TEST_ASSET_KUBECTL",
                kubectl.display()
            ))
        }
    }
}
