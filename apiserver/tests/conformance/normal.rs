//! Masks the values of a response that differ between runs.
//!
//! The closed list: uids, times, ages in tables, resourceVersions, continue tokens, generated
//! suffixes, bearer tokens and the keys that sign them, addresses that the server allocates or has,
//! `managedFields` outside of [`WITH_OWNERS`], the descriptions of table columns, and values of
//! [`headers`](crate::headers).
//! `message`, `reason` and `causes` are not masked; a value of the list that they quote is replaced
//! by its name.

use std::net::Ipv4Addr;
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde_json::{Deserializer, Map, Number, Value};

use crate::headers::mask;
use crate::names::{Names, is_uid, is_version};
use crate::script::{Answer, Content, Script};

/// The scripts whose `managedFields` are recorded and compared, apart from their times and their
/// order, which depends on the times. The others are recorded without them, for the sake of their
/// size.
const WITH_OWNERS: &[&str] = &[
    "apply",
    "apply-scale",
    "configmaps",
    "cronjobs",
    "customapplies",
    "customscale",
    "definitions",
    "deletes",
    "deployments",
    "embedded",
    "events",
    "evictions",
    "jobs",
    "leases",
    "managers",
    "mixtures",
    "mutations2",
    "namespaces",
    "ownership",
    "persistentvolumeclaims",
    "podlevel",
    "quotas",
    "repeats",
    "resize",
    "resourceclaims",
    "resourcequotas",
    "reviews",
    "secrets",
    "serviceaccounts",
    "services",
    "statuses",
    "statusupserts",
    "upserts",
    "writes",
];

/// Members whose value is a time that the server read from its clock.
const TIMES: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "expirationTimestamp",
    "firstTimestamp",
    "lastHeartbeatTime",
    "lastPhaseTransitionTime",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "time",
    "timeAdded",
];

/// Columns of a table that are computed from the clock. A column of type `date` is one, too.
const AGES: &[&str] =
    &["Age", "Created At", "Duration", "First Seen", "Last Schedule", "Last Seen", "TimeAdded"];

/// The text in a message before a version that the server knows.
const BEFORE_VERSIONS: &[&str] =
    &["current: ", "resource version: ", "ResourceVersion in object meta: ", "in record ("];

/// The normaliser of one script. The name of a value depends on the earlier responses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Normaliser {
    names: Names,
    /// Everything that the client has sent: the server did not choose these values.
    sent: String,
    /// True if `managedFields` are compared.
    with_owners: bool,
}

/// The key of the identifier of a token, among what a review says about its user.
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

// === impl Normaliser ===

impl Normaliser {
    /// Returns the normaliser of a script.
    pub(crate) fn of(script: &Script) -> Self {
        let with_owners = WITH_OWNERS.contains(&script.name.as_str());
        Self { with_owners, ..Self::default() }
    }

    /// Records the text that the client sends.
    pub(crate) fn sends(&mut self, text: &str) {
        self.sent.push_str(text);
        self.sent.push('\n');
    }

    /// Returns the response in the form in which it is compared and recorded. The recorded response
    /// supplies the names.
    pub(crate) fn normal(&mut self, raw: &Answer, recorded: Option<&Answer>) -> Answer {
        let headers = self.headers(&raw.headers);
        let Content::Json(values) = &raw.body else { return Answer { headers, ..raw.clone() } };
        let mut values = values.clone();
        mark_old_versions(&mut values);
        let values = &values;
        let none = Vec::new();
        let recorded = match recorded.map(|answer| &answer.body) {
            Some(Content::Json(values)) => values,
            _ => &none,
        };
        let learn = |names: &mut Names, force| {
            for (recorded, raw) in recorded.iter().zip(values) {
                names.learn(recorded, raw, force);
            }
        };
        learn(&mut self.names, false);
        for value in values {
            self.names.collect(value);
        }
        let mut body: Vec<_> = values.iter().map(|value| self.value("", value)).collect();
        mask_ages(&mut body);
        learn(&mut self.names, true);
        Answer { status: raw.status, headers, body: Content::Json(body) }
    }

    /// Removes the members that are not compared.
    pub(crate) fn drop_skipped(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                let column = is_column(members);
                members.retain(|key, _| !self.is_skipped(key, column));
                members.values_mut().for_each(|member| self.drop_skipped(member));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.drop_skipped(item)),
            _ => {}
        }
    }

    /// Returns true if a member is not compared; the top of `differences.txt` has the reasons.
    fn is_skipped(&self, key: &str, in_column: bool) -> bool {
        match key {
            "managedFields" => !self.with_owners,
            "description" => in_column,
            _ => false,
        }
    }

    fn headers(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let mask = |(name, value): &(String, String)| {
            (name.clone(), mask(name, value, is_uid(value), &self.sent))
        };
        headers.iter().map(mask).collect()
    }

    fn value(&self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Array(items) => items.iter().map(|item| self.value(key, item)).collect(),
            Value::String(text) => self.text(key, text).into(),
            other => other.clone(),
        }
    }

    fn members(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let named = members.contains_key("name");
        let mut normal = Map::new();
        let column = is_column(members);
        for (key, member) in members.iter().filter(|(key, _)| !self.is_skipped(key, column)) {
            let value = match (key.as_str(), member) {
                ("managedFields", Value::Array(entries)) => {
                    by_manager(entries).iter().map(|entry| self.value(key, entry)).collect()
                }
                ("resourceVersion", Value::String(raw)) => self.version(named, raw).into(),
                ("nodePort" | "healthCheckNodePort", Value::Number(port))
                    if is_node_port(port) && !self.sent.contains(&port.to_string()) =>
                {
                    "<port>".into()
                }
                // From the name of a pod to the time of its eviction.
                ("disruptedPods", Value::Object(pods)) => {
                    let times =
                        pods.iter().map(|(pod, time)| (pod.clone(), self.value("time", time)));
                    Value::Object(times.collect())
                }
                ("causes", Value::Array(causes)) => {
                    let mut causes: Vec<_> =
                        causes.iter().map(|cause| self.value("", cause)).collect();
                    sort_conflicts(&mut causes);
                    causes.into()
                }
                _ => self.value(key, member),
            };
            normal.insert(key.clone(), value);
        }
        normal
    }

    /// Returns the name of a version. The version of a list or a bookmark has none: every write to
    /// the server changes it.
    fn version(&self, of_an_object: bool, raw: &str) -> String {
        match self.names.version(raw) {
            Some(name) if of_an_object => name.to_owned(),
            _ if of_an_object || !is_version(raw) => raw.to_owned(),
            _ => "<version>".to_owned(),
        }
    }

    fn text(&self, key: &str, text: &str) -> String {
        let chosen = || !self.sent.contains(text);
        match key {
            "message" => versions_in(&self.quoted(&self.names.translate(text)), &self.sent),
            "continue" if !text.is_empty() => self.token(text),
            CREDENTIAL if text.strip_prefix("JTI=").is_some_and(is_uid) => "JTI=<uid>".to_owned(),
            "token" if is_token(text) && chosen() => self.bearer_token(text),
            "kid" | "x" | "y" if is_hash(text) => format!("<{key} of the key>"),
            "jwks_uri" => at_an_address(text),
            "serverAddress" => "<address>".to_owned(),
            "clusterIP" | "clusterIPs" if is_address(text) && chosen() => "<address>".to_owned(),
            _ if TIMES.contains(&key) && is_time(text) && chosen() => "<time>".to_owned(),
            _ => self.names.translate(text),
        }
    }

    /// Masks the JSON values that a message quotes and sorts their members: Go writes them in the
    /// order of its struct.
    fn quoted(&self, message: &str) -> String {
        let mut text = String::new();
        let mut rest = message;
        while let Some(start) = rest.find(['{', '[', '"']) {
            let (before, from) = rest.split_at(start);
            text.push_str(before);
            let mut values = Deserializer::from_str(from).into_iter::<Value>();
            let value = match values.next() {
                Some(Ok(Value::String(inner))) => serde_json::from_str(&inner)
                    .ok()
                    .filter(Value::is_object)
                    .map(|value: Value| {
                        Value::String(self.value("", &value).to_string()).to_string()
                    }),
                Some(Ok(value)) => Some(self.value("", &value).to_string()),
                _ => None,
            };
            let end = if value.is_some() { values.byte_offset() } else { 1 };
            text.push_str(value.as_deref().unwrap_or(&from[..1]));
            rest = &from[end..];
        }
        text + rest
    }

    /// Returns what a bearer token says, if it says anything: without its signature, and with its
    /// times relative to that of its issue.
    fn bearer_token(&self, token: &str) -> String {
        let part = |place| -> Option<Value> {
            let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(place)?).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        let (Some(header), Some(mut claims)) = (part(0), part(1)) else {
            return "<token>".to_owned();
        };
        let issued = claims["iat"].as_i64().unwrap_or_default();
        for pointer in ["/iat", "/nbf", "/exp", "/kubernetes.io/warnafter"] {
            if let Some(time) = claims.pointer_mut(pointer) {
                *time = time.as_i64().map_or(Value::Null, |time| (time - issued).into());
            }
        }
        if claims["jti"].as_str().is_some_and(is_uid) {
            claims["jti"] = "<uid>".into();
        }
        format!("<token {} {}>", self.value("", &header), self.value("", &claims))
    }

    /// Returns the content of a continue token without its version.
    fn token(&self, token: &str) -> String {
        let bytes = URL_SAFE_NO_PAD.decode(token).or_else(|_| STANDARD_NO_PAD.decode(token));
        let decoded = bytes.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let Some(Value::Object(mut members)) = decoded else { return token.to_owned() };
        if members.get("rv").and_then(Value::as_i64).is_some_and(|version| version > 0) {
            members.insert("rv".to_owned(), "<version>".into());
        }
        // The storage writes a leading slash in the key; the watch cache does not.
        if let Some(Value::String(start)) = members.get_mut("start") {
            *start = start.trim_start_matches('/').to_owned();
        }
        format!("<token {}>", self.names.translate(&Value::Object(members).to_string()))
    }
}

/// Returns true if an object describes a column of a table.
fn is_column(members: &Map<String, Value>) -> bool {
    members.contains_key("priority") && members.contains_key("format")
}

/// Sorts owners by their managers: the server sorts them by their times, which may be equal or not.
/// Owners in an order that no server has stay as they are, with a mark.
fn by_manager(entries: &[Value]) -> Vec<Value> {
    let key = |entry: &Value, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| entry[*name].as_str().unwrap_or_default().to_owned()).collect()
    };
    let order = ["operation", "time", "manager", "apiVersion", "subresource"];
    let mut sorted = entries.to_vec();
    if !entries.is_sorted_by_key(|entry| key(entry, &order)) {
        sorted.push("not in the order of a server".into());
        return sorted;
    }
    sorted.sort_by_key(|entry| key(entry, &["manager", "operation", "subresource", "apiVersion"]));
    sorted
}

/// Sorts the causes of a conflict of appliers: the real server lists the managers in a random
/// order.
fn sort_conflicts(causes: &mut [Value]) {
    if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") {
        causes.sort_by_key(|cause| (cause["message"].to_string(), cause["field"].to_string()));
    }
}

/// Masks the ages in tables. Only the first table of a watch names its columns.
fn mask_ages(values: &mut [Value]) {
    let mut ages = Vec::new();
    for value in values {
        let table = if value["object"].is_object() { &mut value["object"] } else { value };
        if let Some(columns) = table["columnDefinitions"].as_array() {
            let is_age = |column: &Value| {
                let is_named = column["name"].as_str().is_some_and(|name| AGES.contains(&name));
                is_named || column["type"] == "date"
            };
            ages = columns.iter().map(is_age).collect();
        }
        for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            let cells = row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten();
            let ages = ages.iter().zip(cells).filter(|(is_age, cell)| **is_age && is_an_age(cell));
            ages.for_each(|(_, cell)| *cell = "<age>".into());
        }
    }
}

/// Returns true if a cell is an age, or the time from which it would be counted.
fn is_an_age(cell: &Value) -> bool {
    is_a_duration(cell) || cell.as_str().is_some_and(is_time)
}

/// Returns true if a cell is a duration, such as `5s` or `2d3h`, and nothing else.
fn is_a_duration(cell: &Value) -> bool {
    let Some(text) = cell.as_str() else { return false };
    // An event that was repeated says so: `5s (x2 over 10s)`.
    let (text, repeated) = text.split_once(" (x").unwrap_or((text, ""));
    let is_known = |c: char| c.is_ascii_digit() || "smhdy".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(is_known)
        && (repeated.is_empty() || repeated.ends_with(')'))
}

/// Returns true if a text is a time as the API writes it, in UTC.
fn is_time(text: &str) -> bool {
    text.ends_with('Z') && text.contains('T') && text.parse::<Timestamp>().is_ok()
}

/// Returns true if a text may be a bearer token.
fn is_token(text: &str) -> bool {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() >= 16 && text.chars().all(is_known)
}

/// Returns true if a text has 32 bytes in Base64, as the identifier of a key and its coordinates
/// do.
fn is_hash(text: &str) -> bool {
    URL_SAFE_NO_PAD.decode(text).is_ok_and(|bytes| bytes.len() == 32)
}

/// Masks the address of the server in a URL.
fn at_an_address(url: &str) -> String {
    let rest = url.strip_prefix("https://").and_then(|rest| rest.split_once('/'));
    rest.map_or_else(|| url.to_owned(), |(_, path)| format!("https://<address>/{path}"))
}

/// Returns true if a text is an address that a server may choose for a service.
fn is_address(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok_and(|address| address.octets()[..2] == [10, 0])
}

fn is_node_port(port: &Number) -> bool {
    port.as_u64().is_some_and(|port| (30_000..=32_767).contains(&port))
}

/// Replaces the version of a list that is older than one of its items, and that of a bookmark that
/// is older than an event before it.
fn mark_old_versions(values: &mut [Value]) {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<u64>().ok());
    let newest = |items: &[Value]| {
        items.iter().filter_map(|item| number(&item["metadata"]["resourceVersion"])).max()
    };
    let mut newest_event = None;
    for value in values {
        let items = value["items"].as_array().and_then(|items| newest(items));
        let own = number(&value["metadata"]["resourceVersion"]);
        if own.is_some() && own < items {
            value["metadata"]["resourceVersion"] = "older than an item".into();
        }
        let event = number(&value["object"]["metadata"]["resourceVersion"]);
        if value["type"] == "BOOKMARK" && event.is_some() && event < newest_event {
            value["object"]["metadata"]["resourceVersion"] = "older than an event".into();
        }
        newest_event = newest_event.max(event);
    }
}

/// Replaces the versions in a message that the client did not send by `<version>`.
fn versions_in(message: &str, sent: &str) -> String {
    let mut text = message.to_owned();
    // The oldest known version follows the unknown one.
    let oldest = message.starts_with("too old resource version: ").then_some(&" (");
    for before in BEFORE_VERSIONS.iter().chain(oldest) {
        let mut from = 0;
        while let Some(Range { start, end }) = digits_after(&text, before, from) {
            let digits = &text[start..end];
            from = end;
            if start < end && !has_number(sent, digits) {
                text.replace_range(start..end, "<version>");
                from = start;
            }
        }
    }
    text
}

/// Returns true if the text contains the number as a complete word.
fn has_number(text: &str, digits: &str) -> bool {
    text.match_indices(digits).any(|(at, _)| {
        let goes_on = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let after = text[at + digits.len()..].chars().next();
        !goes_on(text[..at].chars().next_back()) && !goes_on(after)
    })
}

fn digits_after(text: &str, before: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text.get(from..)?.find(before)? + before.len();
    let digits = text[start..].chars().take_while(char::is_ascii_digit).count();
    Some(start..start + digits)
}
