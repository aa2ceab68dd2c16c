//! Tests with foreign clients over a socket: kubectl, client-go, controller-runtime and kube-rs.
//!
//! The output of kubectl is compared with its output for a real kube-apiserver. The programs
//! in Go check their expectations themselves and run against both servers. On a machine without the
//! real programs or without Go, the tests are `ignored`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod client_go;
mod cluster;
mod controller_runtime;
mod go;
mod kube_rs;
mod kube_runtime;
mod kubectl;

use std::env;
use std::path::PathBuf;

use homeostat_testing::control_plane::Binaries;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// The programs that a test needs and that a machine may not have.
struct Programs {
    kubectl: PathBuf,
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Each test starts its own servers; a real one uses a full core during its start.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let mut trials = kube_runtime::trials();
    trials.extend(kube_rs::trials());
    trials.extend(client_go::trials());
    trials.extend(controller_runtime::trials());
    trials.extend(kubectl::trials());
    libtest_mimic::run(&arguments, trials).exit();
}

/// Creates a test that needs the real programs. Without them it is ignored, unless
/// `HOMEOSTAT_REQUIRE_CONTROL_PLANE` is set.
fn with_programs(
    name: &str,
    test: impl FnOnce(Programs) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || match Programs::find() {
        Ok(programs) => test(programs).map(|()| Completion::Completed),
        Err(missing) if Binaries::is_required() => Err(missing.into()),
        Err(missing) => Ok(Completion::ignored_with(missing)),
    })
}

// === impl Programs ===

impl Programs {
    /// Finds kubectl in `TEST_ASSET_KUBECTL` or in the directory of the other programs.
    fn find() -> Result<Self, String> {
        let binaries = Binaries::find().map_err(|missing| missing.to_string())?;
        let kubectl = env::var_os("TEST_ASSET_KUBECTL")
            .map_or_else(|| binaries.kube_apiserver.with_file_name("kubectl"), PathBuf::from);
        if kubectl.is_file() {
            Ok(Self { kubectl })
        } else {
            Err(format!(
                "kubectl not found at {}; build it with `apiserver/control-plane/build.sh`, or set \
                 TEST_ASSET_KUBECTL to its path",
                kubectl.display()
            ))
        }
    }
}
