//! The reviews that webhooks are sent, and the responses of admission in them.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine as _};
use homeostat_core::go_quote;
use serde_json::{Map, Value, json};

use crate::go_json::kind_of;
use crate::status::Failure;

/// A response that follows the rules.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Response {
    pub(super) allowed: bool,
    /// The status of a refusal; null if there is none.
    pub(super) status: Value,
    pub(super) warnings: Vec<String>,
    /// Empty if the webhook changes nothing.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
}

/// A kind of review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReviewKind {
    group: &'static str,
    kind: &'static str,
    /// Go's name of the type of a response.
    response: &'static str,
    /// The members of a response, with Go's names of their types.
    members: &'static [(&'static str, &'static str)],
    /// The name of the status in a response.
    status: &'static str,
    /// The response in a request, in JSON, if it has one.
    sent_response: Option<&'static str>,
    /// True if the webhook learns how much time the request has left.
    pub(super) shows_time_left: bool,
}

/// The reviews of admission.
pub(super) static ADMISSION: ReviewKind = ReviewKind {
    group: "admission.k8s.io",
    kind: "AdmissionReview",
    response: "AdmissionResponse",
    members: &[
        ("allowed", "bool"),
        ("auditAnnotations", "map[string]string"),
        ("patch", "[]uint8"),
        ("patchType", "PatchType"),
        ("status", "v1.Status"),
        ("uid", "types.UID"),
        ("warnings", "[]string"),
    ],
    status: "status",
    sent_response: None,
    shows_time_left: true,
};

/// The reviews of the conversion of custom objects.
pub(super) static CONVERSION: ReviewKind = ReviewKind {
    group: "apiextensions.k8s.io",
    kind: "ConversionReview",
    response: "ConversionResponse",
    members: &[
        ("convertedObjects", "[]runtime.RawExtension"),
        ("result", "v1.Status"),
        ("uid", "types.UID"),
    ],
    status: "result",
    sent_response: Some(r#"{"uid":"","convertedObjects":null,"result":{"metadata":{}}}"#),
    shows_time_left: false,
};

const EMPTY: &str = "0-length response with status code: 200 and content type: application/json";
/// Go's name of the type that the real server reads first.
const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Returns the review with a request, which `content` describes in JSON.
pub(super) fn request(of: &ReviewKind, content: &str, uid: &str, version: &str) -> String {
    let mut request: Map<String, Value> = serde_json::from_str(content).unwrap_or_default();
    request.insert("uid".to_owned(), json!(uid));
    let mut review =
        json!({"kind": of.kind, "apiVersion": of.api_version(version), "request": request});
    if let Some(Ok(response)) = of.sent_response.map(serde_json::from_str) {
        review["response"] = response;
    }
    review.to_string()
}

// === impl ReviewKind ===

impl ReviewKind {
    fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }

    /// Returns true if the webhook states exactly this kind and version.
    pub(super) fn is_stated(&self, review: &Map<String, Value>, version: &str) -> bool {
        text(review, "apiVersion") == self.api_version(version) && text(review, "kind") == self.kind
    }

    /// Returns the error about a review that is not of this kind and version.
    pub(super) fn not_stated(&self, review: &Map<String, Value>, version: &str) -> String {
        let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
        let got = if api_version.is_empty() { "/" } else { api_version };
        let (wanted, expected) = (self.api_version(version), self.kind);
        format!("expected webhook response of {wanted}, Kind={expected}, got {got}, Kind={kind}")
    }
}

/// Reads the body of a reply as a review.
///
/// # Errors
///
/// Returns the reason why it is none.
pub(super) fn decode(
    of: &ReviewKind,
    body: &[u8],
    version: &str,
) -> Result<Map<String, Value>, String> {
    let Ok(Value::Object(review)) = serde_json::from_slice(body) else {
        return Err(undecodable(body));
    };
    let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
    let wanted = of.api_version(version);
    let is_known = |name: &str| {
        name.is_empty() || ["v1", "v1beta1"].iter().any(|known| of.api_version(known) == name)
    };
    if !kind.is_empty() && (kind != of.kind || !is_known(api_version)) {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \
             \"pkg/runtime/scheme.go:111\"",
            go_quote(kind),
            go_quote(api_version)
        ));
    }
    if !api_version.is_empty() && api_version != wanted {
        let (got, to, kind) = (go_version(api_version), go_version(&wanted), of.kind);
        let why = format!("converting ({got}.{kind}) to ({to}.{kind}): unknown conversion");
        let names_target = *of == ADMISSION;
        let target = format!("unable to decode {wanted}, Kind={kind} into *{to}.{kind}: ");
        return Err(if names_target { target + &why } else { why });
    }
    match wrong_member(of, &review, version) {
        Some(why) => Err(why),
        None => Ok(review),
    }
}

/// Returns the reason why a body is no object.
fn undecodable(body: &[u8]) -> String {
    if body.is_empty() {
        return EMPTY.to_owned();
    }
    // The decoder takes YAML, too, where most texts are strings.
    let found = serde_json::from_slice(body).map_or("string", |value| kind_of(&value));
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value \
         of type {TYPE_META}"
    )
}

fn go_version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

pub(super) fn text<'a>(of: &'a Map<String, Value>, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The members of the status in a response, with Go's names of their types.
const STATUS: [(&str, &str); 5] = [
    ("code", "int32"),
    ("details", "v1.StatusDetails"),
    ("message", "string"),
    ("reason", "v1.StatusReason"),
    ("status", "string"),
];

/// Returns Go's error about a member of a response that has a wrong type, or is no base64.
fn wrong_member(of: &ReviewKind, review: &Map<String, Value>, version: &str) -> Option<String> {
    let response = review.get("response").filter(|response| !response.is_null())?;
    let Value::Object(response) = response else {
        let kind = format!("{version}.{}", of.response);
        return Some(unfit(response, (of.kind, "response"), &kind));
    };
    let of_response = |value: &Value, name: &str, kind: &str| {
        let package = if kind == "PatchType" { format!("{version}.") } else { String::new() };
        let place = format!("response.{name}");
        unfit(value, (of.response, &place), &format!("{package}{kind}"))
    };
    for (name, kind, value) in members(response, of.members) {
        let inner: Vec<&Value> = match value {
            _ if !fits(value, kind) => return Some(of_response(value, name, kind)),
            Value::Array(texts) if kind == "[]string" => texts.iter().collect(),
            Value::Object(texts) if name != of.status => texts.values().collect(),
            _ => Vec::new(),
        };
        if let Some(wrong) = inner.into_iter().find(|text| !text.is_string() && !text.is_null()) {
            return Some(of_response(wrong, name, "string"));
        }
    }
    let status = response.get(of.status).and_then(Value::as_object);
    let mut of_status = status.into_iter().flat_map(|status| members(status, &STATUS));
    if let Some((name, kind, value)) = of_status.find(|(_, kind, value)| !fits(value, kind)) {
        return Some(unfit(value, ("Status", &format!("response.{}.{name}", of.status)), kind));
    }
    let error = decode_patch(text(response, "patch")).err()?;
    let patch = text(response, "patch");
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
        DecodeError::InvalidPadding => patch.find('=').unwrap_or(patch.len()),
        DecodeError::InvalidLength(_) => patch.len() / 4 * 4,
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

/// Returns the members of an object that a table has, with the types there.
fn members<'a>(
    object: &'a Map<String, Value>,
    table: &'a [(&'static str, &'static str)],
) -> impl Iterator<Item = (&'static str, &'static str, &'a Value)> {
    let of_object =
        move |(name, kind): &(&'static str, &'static str)| Some((*name, *kind, object.get(*name)?));
    let known = table.iter().filter_map(of_object);
    known.filter(|(_, _, value)| !value.is_null())
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "bool" => value.is_boolean(),
        "int32" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "[]string" | "[]runtime.RawExtension" => value.is_array(),
        "map[string]string" | "v1.Status" | "v1.StatusDetails" => value.is_object(),
        _ => value.is_string(),
    }
}

fn unfit(value: &Value, (owner, place): (&str, &str), kind: &str) -> String {
    let found = kind_of(value);
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{place} of type {kind}")
}

/// Decodes the base64 of a patch. As in Go, line ends in it do not count.
fn decode_patch(text: &str) -> Result<Vec<u8>, DecodeError> {
    STANDARD.decode(text.replace(['\r', '\n'], ""))
}

/// Checks the response in a review.
///
/// # Errors
///
/// Returns the rule that it breaks.
pub(super) fn verify(
    review: &Map<String, Value>,
    (uid, version): (&str, &str),
    is_mutating: bool,
) -> Result<Response, String> {
    let Some(Value::Object(response)) = review.get("response") else {
        return Err("webhook response was absent".to_owned());
    };
    let patch = text(response, "patch");
    let patch_type = response.get("patchType").and_then(Value::as_str);
    if version == "v1" {
        verify_v1(review, response, uid)?;
        verify_patch(!patch.is_empty(), patch_type, is_mutating)?;
    }
    let warnings = response.get("warnings").and_then(Value::as_array).into_iter().flatten();
    let is_patched = is_mutating && !patch.is_empty();
    // Version v1beta1 has one type of patches only.
    let patch_type = if version == "v1" { patch_type.unwrap_or_default() } else { "JSONPatch" };
    Ok(Response {
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or_default(),
        status: response.get("status").cloned().unwrap_or_default(),
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        patch: if is_patched { decode_patch(patch).unwrap_or_default() } else { Vec::new() },
        patch_type: patch_type.to_owned(),
    })
}

/// Checks that the response answers this review.
fn verify_v1(
    review: &Map<String, Value>,
    response: &Map<String, Value>,
    uid: &str,
) -> Result<(), String> {
    let answered = text(response, "uid");
    if answered != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(answered)));
    }
    if !ADMISSION.is_stated(review, "v1") {
        return Err(ADMISSION.not_stated(review, "v1"));
    }
    Ok(())
}

fn verify_patch(
    is_present: bool,
    patch_type: Option<&str>,
    is_mutating: bool,
) -> Result<(), String> {
    let problem = match (is_mutating, is_present, patch_type) {
        (true, true, None) => "webhook returned response.patch but not response.patchType",
        (true, false, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, true, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, true, _) => "validating webhook may not return response.patch",
        (false, false, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(problem.to_owned())
}

/// Returns the reply to a request that a webhook refuses, from the status in its response.
pub(super) fn refusal(webhook: &str, status: &Value) -> Failure {
    let mut status = status.as_object().cloned().unwrap_or_default();
    let code = status.get("code").and_then(Value::as_u64).filter(|code| *code >= 400);
    let code = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(400);
    let denied_by = format!("admission webhook {} denied the request", go_quote(webhook));
    let message = match (text(&status, "message"), text(&status, "reason")) {
        ("", "") => format!("{denied_by} without explanation"),
        ("", reason) => format!("{denied_by}: {reason}"),
        (message, _) => format!("{denied_by}: {message}"),
    };
    if matches!(text(&status, "status"), "" | "Success") {
        status.insert("status".to_owned(), json!("Failure"));
    }
    for (name, value) in [
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("message", json!(message)),
        ("code", json!(code)),
    ] {
        status.insert(name.to_owned(), value);
    }
    status.entry("metadata").or_insert_with(|| json!({}));
    Failure::stated(code, message, status)
}
