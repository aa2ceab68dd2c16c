//! The health endpoints `/healthz`, `/livez` and `/readyz`.

use std::fmt::Write;

use crate::request::params::Params;

/// The names of the checks. Each passes as long as the server answers.
pub(super) const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

pub(super) fn is_check(name: &str) -> bool {
    CHECKS.contains(&name)
}

/// Returns the report on all checks: `ok`, or a line for each.
pub(super) fn report(kind: &str, params: &Params) -> String {
    if !params.is_present("verbose") {
        return "ok".to_owned();
    }
    let mut excluded = params.all("exclude");
    let mut text = String::new();
    for check in CHECKS {
        let how = if excluded.contains(&check) { "excluded: ok" } else { "ok" };
        writeln!(text, "[+]{check} {how}").expect("writing to a String does not fail");
    }
    excluded.retain(|name| !is_check(name));
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("\"{name}\"")).collect();
        let names = names.join(", ");
        writeln!(text, "warn: some health checks cannot be excluded: no matches for {names}")
            .expect("writing to a String does not fail");
    }
    text + kind + " check passed\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_verbose_only_on_request() {
        let report = |query: &str| report("livez", &Params::parse(query));
        assert_eq!(report(""), "ok");
        assert_eq!(report("exclude=etcd"), "ok");
        let expected = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n\
            warn: some health checks cannot be excluded: no matches for \"x\"\nlivez check \
            passed\n";
        assert_eq!(report("verbose&exclude=etcd&exclude=x"), expected);
    }
}
