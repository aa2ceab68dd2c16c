//! The names of server-chosen values in the files.

use std::collections::HashMap;

use serde_json::Value;

/// Names for uids, versions and generated names: the same value has the same name throughout a
/// script.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// A uid or a generated name → its name in the file.
    values: HashMap<String, String>,
    /// The version of an object → its name in the file.
    versions: HashMap<String, String>,
}

/// The start of the name of the volume with a pod's token.
const TOKEN_VOLUME: &str = "kube-api-access-";

// === impl Names ===

impl Names {
    pub(crate) fn version(&self, raw: &str) -> Option<&str> {
        self.versions.get(raw).map(String::as_str)
    }

    /// Replaces each known uid and generated name by its name.
    pub(crate) fn translate(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (raw, name) in &self.values {
            if text.contains(raw) {
                text = text.replace(raw, name);
            }
        }
        text
    }

    /// Names the new values in a response.
    pub(crate) fn collect(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(metadata) = members.get("metadata") {
                    self.collect_metadata(metadata);
                }
                if let Some(name) = members.get("name").and_then(text) {
                    self.collect_volume(name);
                }
                members.values().for_each(|member| self.collect(member));
                if let Some(uid) = text(&members.get("details").unwrap_or(&Value::Null)["uid"]) {
                    let name = text(&members["details"]["name"]).unwrap_or_default();
                    self.name_uid(uid, name);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn collect_metadata(&mut self, metadata: &Value) {
        let Some(name) = text(&metadata["name"]) else { return };
        let mut called = name.to_owned();
        // The server truncates a long base name.
        let base = text(&metadata["generateName"]).map(|base| base.get(..58).unwrap_or(base));
        let generated = base.and_then(|base| name.strip_prefix(base));
        if let Some(suffix) = generated.filter(|suffix| is_suffix(suffix)) {
            let base = name.strip_suffix(suffix).unwrap_or_default();
            called = self.name_once(name, |n| format!("{base}<suffix-{n}>"));
        }
        if let Some(uid) = text(&metadata["uid"]).filter(|uid| is_uid(uid)) {
            called = self.name_uid(uid, &called);
        }
        let version = text(&metadata["resourceVersion"]).filter(|version| is_version(version));
        let Some(version) = version else { return };
        if !self.versions.contains_key(version) {
            let free = |n: &usize| {
                let name = format!("<version {n} of {called}>");
                !self.versions.values().any(|used| *used == name)
            };
            let n = (1..usize::MAX).find(free).unwrap_or_default();
            self.versions.insert(version.to_owned(), format!("<version {n} of {called}>"));
        }
    }

    /// Names the volume of a pod's token, whose suffix the server chooses.
    fn collect_volume(&mut self, name: &str) {
        if name.strip_prefix(TOKEN_VOLUME).is_some_and(is_suffix) {
            self.name_once(name, |n| format!("{TOKEN_VOLUME}<suffix-{n}>"));
        }
    }

    /// Returns the name of an object; a second object of the same name gets a number.
    fn name_uid(&mut self, uid: &str, name: &str) -> String {
        let called = self.name_once(uid, |n| match n {
            1 => format!("<uid of {name}>"),
            n => format!("<uid of {name} ({n})>"),
        });
        called.trim_start_matches("<uid of ").trim_end_matches('>').to_owned()
    }

    fn name_once(&mut self, raw: &str, name: impl Fn(usize) -> String) -> String {
        if let Some(called) = self.values.get(raw) {
            return called.clone();
        }
        let free = |n: &usize| !self.values.values().any(|used| *used == name(*n));
        let called = name((1..usize::MAX).find(free).unwrap_or_default());
        self.values.insert(raw.to_owned(), called.clone());
        called
    }

    /// Takes the names of the values from a recorded response. A value or name that is taken keeps
    /// its meaning unless `force` is set, so that one wrong response does not affect the next ones.
    pub(crate) fn learn(&mut self, recorded: &Value, raw: &Value, force: bool) {
        match (recorded, raw) {
            (Value::Object(recorded), Value::Object(raw)) => {
                let raw = |key| raw.get(key).unwrap_or(&Value::Null);
                recorded.iter().for_each(|(key, member)| self.learn(member, raw(key), force));
            }
            (Value::Array(recorded), Value::Array(raw)) => {
                for (recorded, raw) in recorded.iter().zip(raw) {
                    self.learn(recorded, raw, force);
                }
            }
            (Value::String(name), Value::String(raw)) => self.learn_text(name, raw, force),
            _ => {}
        }
    }

    fn learn_text(&mut self, name: &str, raw: &str, force: bool) {
        let whole = |start: &str| {
            name.starts_with(start) && name.ends_with('>') && name.matches('<').count() == 1
        };
        let known = if whole("<version ") && name.contains(" of ") && is_version(raw) {
            &mut self.versions
        } else if (whole("<uid of ") && is_uid(raw)) || is_generated(name, raw) {
            &mut self.values
        } else {
            return;
        };
        if force {
            known.retain(|_, used| used != name);
        } else if known.contains_key(raw) || known.values().any(|used| used == name) {
            return;
        }
        known.insert(raw.to_owned(), name.to_owned());
    }
}

/// Returns true if a text is a version: a number without leading zeros.
pub(crate) fn is_version(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0')
        && text.parse::<u64>().is_ok()
}

/// Returns true if a text is a UUID of version 4.
pub(crate) fn is_uid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(is_hex))
        && groups[2].starts_with('4')
}

/// Returns true if a text is what a server appends to a generated name.
fn is_suffix(text: &str) -> bool {
    text.len() == 5 && text.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
}

/// Returns true if `raw` has the base of the generated name `name`, such as `a-<suffix-1>`.
fn is_generated(name: &str, raw: &str) -> bool {
    let Some((base, _)) = name.split_once("<suffix-").filter(|_| !name.contains(' ')) else {
        return false;
    };
    raw.strip_prefix(base).is_some_and(is_suffix)
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
