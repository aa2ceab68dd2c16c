//! The warnings about files of one volume that hide each other.

use serde_json::Value;

use crate::fields::text;
use crate::kinds::checks::{items, member};

/// A file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File<'a> {
    path: &'a str,
    /// The source of the file; empty for a volume with one source.
    source: String,
}

/// Returns the warnings about the files of a volume.
pub(super) fn of_volume(volume: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let named = [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")];
    for (key, shown, name) in named {
        let source = member(volume, key);
        let shown = format!("{shown} \"{}\"", text(source, name));
        found.extend(overlaps(volume, &shown, &listed(source, "")));
    }
    found.extend(overlaps(volume, "DownwardAPI", &listed(member(volume, "downwardAPI"), "")));
    let name = text(volume, "name");
    let mut files = Vec::new();
    for source in items(member(member(volume, "projected"), "sources")) {
        if source.as_object().is_none_or(|all| all.values().all(Value::is_null)) {
            found.push(format!("volume \"{name}\" (Projected) has no sources provided"));
        }
        for file in projected(source) {
            found.extend(collisions(name, "Projected", &file, &files));
            files.push(file);
        }
    }
    found
}

/// Returns the files of a list of paths.
fn listed<'a>(source: &'a Value, shown: &str) -> Vec<File<'a>> {
    let paths = items(member(source, "items")).iter().map(|item| text(item, "path"));
    paths.map(|path| File::new(path, shown.to_owned())).collect()
}

/// Returns the files of a source of a projected volume.
fn projected(source: &Value) -> Vec<File<'_>> {
    let one = |key: &str| member(source, key);
    if !member(one("configMap"), "items").is_null() {
        let name = text(one("configMap"), "name");
        return listed(one("configMap"), &format!("ConfigMap \"{name}\""));
    }
    if !member(one("secret"), "items").is_null() {
        return listed(one("secret"), &format!("Secret \"{}\"", text(one("secret"), "name")));
    }
    if !member(one("downwardAPI"), "items").is_null() {
        return listed(one("downwardAPI"), "DownwardAPI");
    }
    let token = one("serviceAccountToken");
    if !token.is_null() {
        return vec![File::new(text(token, "path"), "ServiceAccountToken".to_owned())];
    }
    let bundle = one("clusterTrustBundle");
    if !bundle.is_null() {
        let name = if member(bundle, "name").is_null() { "signerName" } else { "name" };
        let shown = format!("ClusterTrustBundle \"{}\"", text(bundle, name));
        return vec![File::new(text(bundle, "path"), shown)];
    }
    let certificate = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let certificate = certificate.map(|(key, shown)| (text(one("podCertificate"), key), shown));
    let given = certificate.into_iter().filter(|(path, _)| !path.is_empty());
    given.map(|(path, shown)| File::new(path, shown.to_owned())).collect()
}

/// Returns a warning for each two files of which one hides the other.
fn overlaps(volume: &Value, shown: &str, files: &[File<'_>]) -> Vec<String> {
    let name = text(volume, "name");
    let pairs = files.iter().enumerate().map(|(place, file)| (file, &files[..place]));
    pairs.flat_map(|(file, earlier)| collisions(name, shown, file, earlier)).collect()
}

/// Returns a warning for each earlier file of a volume that a file hides, or that hides it.
fn collisions(volume: &str, shown: &str, file: &File<'_>, earlier: &[File<'_>]) -> Vec<String> {
    let hidden = earlier.iter().filter(|other| file.overlaps(other));
    let warning = |other: &File<'_>| {
        let (file, other) = (file.shown(), other.shown());
        format!("volume \"{volume}\" ({shown}): overlapping paths: {file} with {other}")
    };
    hidden.map(warning).collect()
}

// === impl File ===

impl<'a> File<'a> {
    fn new(path: &'a str, source: String) -> Self {
        Self { path: path.trim_end_matches('/'), source }
    }

    /// Returns true if both files have one path, or one is inside of the other.
    fn overlaps(&self, other: &Self) -> bool {
        let is_below = |one: &str, folder: &str| {
            one.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (is_below(self.path, other.path) || is_below(other.path, self.path))
    }

    fn shown(&self) -> String {
        let Self { path, source } = self;
        if source.is_empty() { format!("\"{path}\"") } else { format!("\"{path}\" ({source})") }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn file_inside_of_a_file_is_reported() {
        let volume = json!({"name": "v", "configMap": {"name": "m", "items": [
            {"key": "a", "path": "a/"}, {"key": "b", "path": "ab"}, {"key": "c", "path": "a/b"}]}});
        let expected = r#"volume "v" (ConfigMap "m"): overlapping paths: "a/b" with "a""#;
        assert_eq!(of_volume(&volume), [expected]);
    }

    #[test]
    fn files_of_all_sources_of_a_projected_volume_are_compared() {
        let volume = json!({"name": "v", "projected": {"sources": [
            {"secret": {"name": "s", "items": [{"key": "a", "path": "a"}]}},
            {"serviceAccountToken": {"path": "a"}}, {}]}});
        let expected = [
            "volume \"v\" (Projected): overlapping paths: \"a\" (ServiceAccountToken) with \"a\" \
             (Secret \"s\")",
            "volume \"v\" (Projected) has no sources provided",
        ];
        assert_eq!(of_volume(&volume), expected);
    }
}
