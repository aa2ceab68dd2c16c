//! The names of container images (`distribution/reference`).

/// The most bytes of a name, with the domain and the path that a short one stands for.
const LONGEST: usize = 255;

/// Returns true if an image has the tag `latest`, or neither a tag nor a digest. A text that names
/// no image has not.
pub(super) fn is_latest(image: &str) -> bool {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    // A colon before a slash is that of a port.
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_latest = match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    };
    is_latest && is_name(name) && digest.is_none_or(is_digest)
}

fn is_digest(digest: &str) -> bool {
    const DIGITS: usize = 64;
    let digits = digest.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true if a text is the name of an image without tag and digest.
fn is_name(name: &str) -> bool {
    let (first, rest) = name.split_once('/').unwrap_or(("", name));
    let is_domain =
        first.contains(['.', ':']) || first == "localhost" || first != first.to_lowercase();
    let (domain, path) = if is_domain { (first, rest) } else { ("", name) };
    // A short name stands for one of `docker.io`, and for one of `library/` there.
    let implied = match (domain, path.contains('/')) {
        ("", true) => "docker.io/".len(),
        ("", false) => "docker.io/library/".len(),
        _ => 0,
    };
    name.len() + implied <= LONGEST
        && (domain.is_empty() || is_domain_name(domain))
        && path.split('/').all(is_path_component)
}

/// Returns true if a text is a host, with a port or not.
fn is_domain_name(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_address =
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).is_some_and(|address| {
            !address.is_empty()
                && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        });
    let is_label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().last()];
        ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    port.is_none_or(is_port) && (is_address || host.split('.').all(is_label))
}

/// Returns true if a text is words of lower-case letters and digits, between which is `.`, `_`,
/// `__` or any number of `-`.
fn is_path_component(component: &str) -> bool {
    let is_word = |byte: char| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut between = component.split(is_word).filter(|text| !text.is_empty());
    component.starts_with(is_word)
        && component.ends_with(is_word)
        && between
            .all(|text| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_without_a_tag_or_digest_is_the_latest() {
        let latest =
            ["nginx", "nginx:latest", "a/b", "example.com:5000/a", "[::1]:5000/a_b--c__d.e"];
        for image in latest {
            assert!(is_latest(image), "{image}");
        }
        let digest = format!("@sha256:{}", "0".repeat(64));
        assert!(is_latest(&format!("a:latest{digest}")));
        assert!(!is_latest(&format!("a{digest}")));
        for image in ["nginx:1", "example.com/a:1", "a@sha256:0", "a:latest@sha256:0"] {
            assert!(!is_latest(image), "{image}");
        }
    }

    #[test]
    fn text_that_names_no_image_is_not_the_latest() {
        let long = "x".repeat(240);
        let wrong =
            ["", "-a", " a", "A_b!", "A", "a/B", "a//b", "a._b", "a_", "ex_ample.com/a", &long];
        for image in wrong {
            assert!(!is_latest(image), "{image}");
        }
        assert!(is_latest(&format!("example.com/{long}")));
    }
}
