//! Levels of pod security, their versions, and the labels of a namespace that name them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

use crate::status::Cause;

/// A level of security, the most permissive one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The version of Kubernetes whose checks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `v1.` and this number.
    Minor(i64),
    Latest,
}

/// A level at a version, such as `baseline:v1.30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelVersion {
    pub(crate) level: Level,
    pub(crate) version: Version,
}

/// The levels of a namespace. That of audits has an effect on metrics only: there is no audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Pods of another level are refused.
    pub(crate) enforce: LevelVersion,
    /// Pods of another level are counted.
    pub(crate) audit: LevelVersion,
    /// Pods of another level, and templates of such pods, get a warning.
    pub(crate) warn: LevelVersion,
}

/// The newest minor version.
pub(super) const NEWEST: i64 = 37;
/// The start of the labels.
const PREFIX: &str = "pod-security.kubernetes.io/";
const LEVELS: [(&str, Level); 3] = [
    ("privileged", Level::Privileged),
    ("baseline", Level::Baseline),
    ("restricted", Level::Restricted),
];

/// The labels of one mode.
struct Given {
    level: Label<Level>,
    version: Label<Version>,
}

/// The value of a label.
#[derive(Clone, Copy, PartialEq)]
enum Label<T> {
    Missing,
    Invalid,
    Valid(T),
}

// === impl Level ===

impl Level {
    pub(super) fn parse(text: &str) -> Option<Self> {
        LEVELS.iter().find(|(name, _)| *name == text).map(|(_, level)| *level)
    }
}

// === impl Version ===

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = minor == "0" || !minor.starts_with('0');
        minor.parse().ok().filter(|_| is_number && is_plain).map(Self::Minor)
    }

    /// Returns the minor version whose checks count: the newest one at most.
    pub(super) fn minor(self, newest: i64) -> i64 {
        match self {
            Self::Minor(minor) => minor.min(newest),
            Self::Latest => newest,
        }
    }
}

// === impl LevelVersion ===

impl LevelVersion {
    /// Returns the name of the level.
    pub(crate) fn level_name(self) -> &'static str {
        LEVELS.iter().find(|(_, level)| *level == self.level).map_or("", |(name, _)| name)
    }

    /// Returns the name of the version in metrics. All versions permit what `privileged` permits.
    pub(crate) fn counted_version(self) -> Cow<'static, str> {
        match self.version {
            Version::Minor(minor) if self.level != Level::Privileged => {
                if minor > NEWEST {
                    "future".into()
                } else {
                    format!("v1.{minor}").into()
                }
            }
            _ => "latest".into(),
        }
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level_name();
        match self.version {
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
            Version::Latest => write!(f, "{level}:latest"),
        }
    }
}

// === impl Given ===

impl Given {
    fn read(labels: &BTreeMap<String, String>, mode: &str, causes: &mut Vec<Cause>) -> Self {
        let levels = LEVELS.map(|(name, _)| name).join(", ");
        let level = format!("{PREFIX}{mode}");
        let version = format!("{level}-version");
        let detail = format!("must be one of {levels}");
        let level = Label::read(labels, &level, (Level::parse, &detail), causes);
        let detail = "must be \"latest\" or \"v1.x\"";
        let version = Label::read(labels, &version, (Version::parse, detail), causes);
        Self { level, version }
    }

    fn version(&self) -> Version {
        self.version.valid().unwrap_or(Version::Latest)
    }
}

// === impl Label ===

impl<T: Copy> Label<T> {
    fn read(
        labels: &BTreeMap<String, String>,
        name: &str,
        (parse, detail): (fn(&str) -> Option<T>, &str),
        causes: &mut Vec<Cause>,
    ) -> Self {
        let Some(text) = labels.get(name) else { return Self::Missing };
        parse(text).map_or_else(
            || {
                let at = format!("metadata.labels[{name}]");
                causes.push(Cause::invalid(at, &json!(text), detail));
                Self::Invalid
            },
            Self::Valid,
        )
    }

    fn valid(self) -> Option<T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Missing | Self::Invalid => None,
        }
    }
}

// === impl Policy ===

impl Policy {
    /// Reads the labels of a namespace. The causes describe the invalid ones: of these `enforce`
    /// counts as `restricted`, `warn` as `privileged`, and a version as the latest one.
    pub(crate) fn read(labels: &BTreeMap<String, String>) -> (Self, Vec<Cause>) {
        let none = LevelVersion { level: Level::Privileged, version: Version::Latest };
        let mut policy = Self { enforce: none, audit: none, warn: none };
        let mut causes = Vec::new();
        if !is_labelled(labels) {
            return (policy, causes);
        }
        let enforce = Given::read(labels, "enforce", &mut causes);
        let audit = Given::read(labels, "audit", &mut causes);
        let warn = Given::read(labels, "warn", &mut causes);
        policy.enforce.level = match enforce.level {
            Label::Missing => Level::Privileged,
            Label::Invalid => Level::Restricted,
            Label::Valid(level) => level,
        };
        policy.enforce.version = enforce.version();
        policy.audit.level = audit.level.valid().unwrap_or(Level::Privileged);
        policy.audit.version = audit.version();
        policy.warn.level = warn.level.valid().unwrap_or(Level::Privileged);
        policy.warn.version = warn.version();
        // An enforced level also warns, for the sake of templates.
        let is_inherited = warn.level == Label::Missing && enforce.level.valid().is_some();
        if is_inherited && policy.enforce.level > Level::Privileged {
            policy.warn.level = policy.enforce.level;
            if warn.version == Label::Missing {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, causes)
    }
}

fn is_labelled(labels: &BTreeMap<String, String>) -> bool {
    labels.range(PREFIX.to_owned()..).next().is_some_and(|(label, _)| label.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the levels of labels, without the common start of their names, and the number of
    /// invalid ones.
    fn levels(labels: &[(&str, &str)]) -> (String, String, usize) {
        let named = |(mode, text): &(&str, &str)| (format!("{PREFIX}{mode}"), (*text).to_owned());
        let (policy, causes) = Policy::read(&labels.iter().map(named).collect());
        (policy.enforce.to_string(), policy.warn.to_string(), causes.len())
    }

    #[test]
    fn namespace_without_labels_permits_all_pods() {
        let all = "privileged:latest".to_owned();
        assert_eq!(levels(&[]), (all.clone(), all, 0));
    }

    #[test]
    fn enforced_level_warns_unless_a_label_says_otherwise() {
        let read = |labels: &[(&str, &str)]| {
            let (enforce, warn, _) = levels(labels);
            [enforce, warn].join(" ")
        };
        let old = ("enforce-version", "v1.20");
        let enforced = ("enforce", "baseline");
        assert_eq!(read(&[enforced, old]), "baseline:v1.20 baseline:v1.20");
        let newer = ("warn-version", "v1.30");
        assert_eq!(read(&[enforced, old, newer]), "baseline:v1.20 baseline:v1.30");
        let warned = ("warn", "restricted");
        assert_eq!(read(&[enforced, old, warned]), "baseline:v1.20 restricted:latest");
        let warned = ("warn", "privileged");
        assert_eq!(read(&[enforced, warned]), "baseline:latest privileged:latest");
    }

    #[test]
    fn invalid_level_is_enforced_as_the_strictest_and_warns_of_nothing() {
        let (enforce, warn, count) =
            levels(&[("enforce", "x"), ("warn", "x"), ("audit", "x"), ("enforce-version", "1.2")]);
        assert_eq!((&*enforce, &*warn, count), ("restricted:latest", "privileged:latest", 4));
        for version in ["v1.", "v1.01", "v1.+1", "v2.0", "v1.99999999999999999999", "Latest"] {
            assert_eq!(levels(&[("warn-version", version)]).2, 1, "{version}");
        }
        assert_eq!(levels(&[("warn-version", "v1.0"), ("audit-version", "v1.99")]).2, 0);
    }
}
