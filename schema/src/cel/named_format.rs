//! The named formats of texts, such as `format.dns1123Label()`.

use crate::{format, names, url};

/// A named format: its name, and its check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFormat {
    pub(super) name: &'static str,
    check: fn(&str) -> Vec<String>,
}

static FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", check: |text| texts(names::dns_label(text)) },
    NamedFormat { name: "dns1123Subdomain", check: |text| texts(names::dns_subdomain(text)) },
    NamedFormat { name: "dns1035Label", check: |text| texts(names::rfc_1035_label(text)) },
    NamedFormat { name: "qualifiedName", check: |text| texts(names::qualified(text)) },
    NamedFormat {
        name: "dns1123LabelPrefix",
        check: |text| texts(names::dns_label(&prefix(text))),
    },
    NamedFormat {
        name: "dns1123SubdomainPrefix",
        check: |text| texts(names::dns_subdomain(&prefix(text))),
    },
    NamedFormat {
        name: "dns1035LabelPrefix",
        check: |text| texts(names::rfc_1035_label(&prefix(text))),
    },
    NamedFormat { name: "labelValue", check: |text| texts(names::label_value(text)) },
    NamedFormat { name: "uri", check: uri },
    NamedFormat {
        name: "uuid",
        check: |text| of_schema("uuid", text, "does not match the UUID format"),
    },
    NamedFormat { name: "byte", check: |text| of_schema("byte", text, "invalid base64") },
    NamedFormat { name: "date", check: |text| of_schema("date", text, "invalid date") },
    NamedFormat { name: "datetime", check: |text| of_schema("datetime", text, "invalid datetime") },
];

// === impl NamedFormat ===

impl NamedFormat {
    /// Returns the format called `name`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Returns the reasons why a text does not have the format.
    pub(super) fn check(&self, text: &str) -> Vec<String> {
        (self.check)(text)
    }
}

fn texts(problems: names::Problems) -> Vec<String> {
    problems.into_iter().map(std::borrow::Cow::into_owned).collect()
}

fn of_schema(name: &str, text: &str, problem: &str) -> Vec<String> {
    if format::is_valid(name, text) { Vec::new() } else { vec![problem.to_owned()] }
}

/// Returns a name that a prefix could begin: a hyphen at its end is one of the middle.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.chars();
            kept.next_back();
            format!("{}a", kept.as_str())
        }
        _ => text.to_owned(),
    }
}

/// Checks a URI as Go's `ParseRequestURI` does.
fn uri(text: &str) -> Vec<String> {
    url::check(text).err().into_iter().collect()
}
