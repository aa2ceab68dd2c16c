//! Paths of files within volumes and containers.

use serde_json::{Value, json};

use crate::status::Cause;

/// Checks that no part of a path is `..`.
pub(super) fn without_backsteps(path: &str, at: &str, causes: &mut Vec<Cause>) {
    if has_backsteps(path) {
        causes.push(Cause::invalid(at, &json!(path), "must not contain '..'"));
    }
}

/// Returns whether a part of a path is `..`.
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
