//! Builds the Go programs beside the tests. Go caches their compilation.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the program in a folder of `tests/real_clients`.
///
/// # Errors
///
/// Fails without Go, and if the program does not compile.
pub(crate) fn build(folder: &str) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_clients").join(folder);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let mut go = Command::new("go");
    go.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(source);
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly");
    match go.output() {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("Go 1.26 or newer is needed to build {folder}: {error}")),
    }
}
