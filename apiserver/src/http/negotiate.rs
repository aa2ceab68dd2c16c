//! Which media type the client can read. There is one to choose from.

use http::{HeaderMap, header};

use crate::status::{Failure, Result};

/// Checks that the client takes plain JSON.
///
/// A Table, or partial metadata, is asked for with parameters (`as=…`); a client that asks for those names plain JSON as
/// a second choice.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<()> {
    let mut asked = false;
    for value in headers.get_all(header::ACCEPT) {
        for range in
            value.to_str().unwrap_or("").split(',').map(str::trim).filter(|range| !range.is_empty())
        {
            asked = true;
            if takes_json(range) {
                return Ok(());
            }
        }
    }
    if asked { Err(not_acceptable()) } else { Ok(()) }
}

fn takes_json(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or("");
    let transformed = parts.any(|parameter| parameter.starts_with("as="));
    matches!(media_type, "application/json" | "application/*" | "*/*") && !transformed
}

fn not_acceptable() -> Failure {
    let message = "only the following media types are accepted: application/json, application/yaml, \
                   application/vnd.kubernetes.protobuf";
    Failure::new(406, "NotAcceptable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        check_accept(&headers).is_ok()
    }

    #[test]
    fn json_is_found_among_other_types() {
        assert!(accepts("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"));
        assert!(accepts("application/vnd.kubernetes.protobuf,application/json"));
        assert!(accepts("*/*"));
        assert!(!accepts("application/xml"));
        assert!(!accepts("application/json;as=Table;v=v1;g=meta.k8s.io"));
        assert!(check_accept(&HeaderMap::new()).is_ok());
    }
}
