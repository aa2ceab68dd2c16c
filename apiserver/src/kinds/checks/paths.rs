//! Paths of files within volumes and containers, and paths below a domain.

use serde_json::{Value, json};

use super::check_text;
use crate::names;
use crate::status::Cause;

/// Checks a path below a domain, such as `example.com/name`.
pub(crate) fn of_domain(text: &str, at: &str, causes: &mut Vec<Cause>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if text.is_empty() {
        causes.push(Cause::required(at, ""));
        return;
    }
    let parts = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(Cause::invalid(at, &json!(text), detail));
        return;
    };
    check_text(&json!(host), names::dns_subdomain, at, causes);
    if !path.bytes().all(plain) {
        let detail =
            "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        causes.push(Cause::invalid(at, &json!(path), detail));
    }
}

/// Checks that no part of a path is `..`.
pub(super) fn without_backsteps(path: &str, at: &str, causes: &mut Vec<Cause>) {
    if has_backsteps(path) {
        causes.push(Cause::invalid(at, &json!(path), "must not contain '..'"));
    }
}

/// Returns true if a part of a path is `..`.
pub(super) fn has_backsteps(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

/// Checks a path that stays below the directory in which it starts.
pub(super) fn descending(path: &str, at: &str, causes: &mut Vec<Cause>) {
    if path.starts_with('/') {
        causes.push(Cause::invalid(at, &json!(path), "must be a relative path"));
    }
    without_backsteps(path, at, causes);
}

/// Checks the path of a file in a volume: kubelets name their own files `..…`.
pub(super) fn not_reserved(_: &Value, path: &Value, at: &str, causes: &mut Vec<Cause>) {
    let path = path.as_str().unwrap_or_default();
    descending(path, at, causes);
    if path.starts_with("..") && !path.starts_with("../") {
        causes.push(Cause::invalid(at, &json!(path), "must not start with '..'"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str) -> usize {
        let mut causes = Vec::new();
        not_reserved(&Value::Null, &json!(path), "path", &mut causes);
        causes.len()
    }

    #[test]
    fn path_of_a_file_is_relative_and_not_reserved() {
        for path in ["a", "a/b", "a/..b"] {
            assert_eq!(count(path), 0, "{path}");
        }
        for path in ["/a", "a/../b", "../a", "..a"] {
            assert_eq!(count(path), 1, "{path}");
        }
        assert_eq!(count(".."), 2);
        assert_eq!(count("/.."), 2);
    }
}
