//! The signatures of functions and operators, for the checker.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::Type;

/// A form of a function: the types of its arguments, the target first, and of its result.
#[derive(Debug, PartialEq)]
pub(crate) struct Signature {
    pub(super) is_member: bool,
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
}

/// Returns the forms of a function; none if it is unknown.
pub(super) fn signatures(function: &str) -> &'static [Signature] {
    static ALL: LazyLock<HashMap<&str, Vec<Signature>>> = LazyLock::new(|| {
        FUNCTIONS
            .iter()
            .map(|(name, forms)| (*name, forms.iter().map(|form| read(form)).collect()))
            .collect()
    });
    ALL.get(function).map_or(&[], Vec::as_slice)
}

/// Returns true if the name is the first part of a function's name, such as `sets`.
pub(super) fn is_namespace(name: &str) -> bool {
    matches!(name, "sets" | "optional" | "ip" | "lists" | "strings" | "format")
}

/// The first part of the names of functions for patches.
pub(super) const PATCH_FUNCTIONS: &str = "jsonpatch";

/// The types of the variables `authorizer` and `authorizer.requestResource`.
pub(crate) const AUTHORIZER: Type = Type::Opaque("kubernetes.authorization.Authorizer");
pub(crate) const RESOURCE_CHECK: Type = Type::Opaque("kubernetes.authorization.ResourceCheck");

/// `target.(arguments) result`, or `(arguments) result`.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("_==_", &["(A, A) bool"]),
    ("_!=_", &["(A, A) bool"]),
    ("_<_", ORDER),
    ("_<=_", ORDER),
    ("_>_", ORDER),
    ("_>=_", ORDER),
    ("@in", &["(A, list<A>) bool", "(A, map<A, B>) bool"]),
    (
        "_+_",
        &[
            "(bytes, bytes) bytes",
            "(double, double) double",
            "(duration, duration) duration",
            "(duration, timestamp) timestamp",
            "(timestamp, duration) timestamp",
            "(int, int) int",
            "(list<A>, list<A>) list<A>",
            "(string, string) string",
            "(uint, uint) uint",
        ],
    ),
    (
        "_-_",
        &[
            "(double, double) double",
            "(duration, duration) duration",
            "(int, int) int",
            "(timestamp, duration) timestamp",
            "(timestamp, timestamp) duration",
            "(uint, uint) uint",
        ],
    ),
    ("_*_", &["(double, double) double", "(int, int) int", "(uint, uint) uint"]),
    ("_/_", &["(double, double) double", "(int, int) int", "(uint, uint) uint"]),
    ("_%_", &["(int, int) int", "(uint, uint) uint"]),
    ("!_", &["(bool) bool"]),
    ("-_", &["(int) int", "(double) double"]),
    (
        "_[_]",
        &[
            "(list<A>, int) A",
            "(map<A, B>, A) B",
            "(optional<list<A>>, int) optional<A>",
            "(optional<map<A, B>>, A) optional<B>",
        ],
    ),
    (
        "_[?_]",
        &[
            "(list<A>, int) optional<A>",
            "(map<A, B>, A) optional<B>",
            "(optional<list<A>>, int) optional<A>",
            "(optional<map<A, B>>, A) optional<B>",
        ],
    ),
    (
        "size",
        &[
            "(string) int",
            "(bytes) int",
            "(list<A>) int",
            "(map<A, B>) int",
            "string.() int",
            "bytes.() int",
            "list<A>.() int",
            "map<A, B>.() int",
        ],
    ),
    ("type", &["(A) type"]),
    ("dyn", &["(A) dyn"]),
    ("bool", &["(bool) bool", "(string) bool"]),
    ("bytes", &["(bytes) bytes", "(string) bytes"]),
    ("double", &["(double) double", "(int) double", "(string) double", "(uint) double"]),
    (
        "int",
        &[
            "(int) int",
            "(double) int",
            "(duration) int",
            "(string) int",
            "(timestamp) int",
            "(uint) int",
        ],
    ),
    ("uint", &["(uint) uint", "(double) uint", "(int) uint", "(string) uint"]),
    (
        "string",
        &[
            "(string) string",
            "(bool) string",
            "(bytes) string",
            "(double) string",
            "(duration) string",
            "(int) string",
            "(timestamp) string",
            "(uint) string",
            "(ip) string",
            "(cidr) string",
        ],
    ),
    ("duration", &["(duration) duration", "(int) duration", "(string) duration"]),
    ("timestamp", &["(timestamp) timestamp", "(int) timestamp", "(string) timestamp"]),
    ("matches", &["(string, string) bool", "string.(string) bool"]),
    ("contains", &["string.(string) bool"]),
    ("startsWith", &["string.(string) bool"]),
    ("endsWith", &["string.(string) bool"]),
    ("getFullYear", TIME),
    ("getMonth", TIME),
    ("getDayOfYear", TIME),
    ("getDayOfMonth", TIME),
    ("getDate", TIME),
    ("getDayOfWeek", TIME),
    ("getHours", CLOCK),
    ("getMinutes", CLOCK),
    ("getSeconds", CLOCK),
    ("getMilliseconds", CLOCK),
    ("charAt", &["string.(int) string"]),
    ("indexOf", &["string.(string) int", "string.(string, int) int", "list<A>.(A) int"]),
    ("lastIndexOf", &["string.(string) int", "string.(string, int) int", "list<A>.(A) int"]),
    ("lowerAscii", &["string.() string"]),
    ("upperAscii", &["string.() string"]),
    ("replace", &["string.(string, string) string", "string.(string, string, int) string"]),
    ("split", &["string.(string) list<string>", "string.(string, int) list<string>"]),
    ("substring", &["string.(int) string", "string.(int, int) string"]),
    ("trim", &["string.() string"]),
    ("join", &["list<string>.() string", "list<string>.(string) string"]),
    ("strings.quote", &["(string) string"]),
    (
        "isSorted",
        &[
            "list<int>.() bool",
            "list<uint>.() bool",
            "list<double>.() bool",
            "list<bool>.() bool",
            "list<duration>.() bool",
            "list<timestamp>.() bool",
            "list<string>.() bool",
            "list<bytes>.() bool",
        ],
    ),
    (
        "sum",
        &[
            "list<int>.() int",
            "list<uint>.() uint",
            "list<double>.() double",
            "list<duration>.() duration",
        ],
    ),
    ("min", EXTREME),
    ("max", EXTREME),
    ("slice", &["list<A>.(int, int) list<A>"]),
    ("flatten", &["list<list<A>>.() list<A>", "list<dyn>.(int) list<dyn>"]),
    (
        "sort",
        &[
            "list<int>.() list<int>",
            "list<uint>.() list<uint>",
            "list<double>.() list<double>",
            "list<bool>.() list<bool>",
            "list<duration>.() list<duration>",
            "list<timestamp>.() list<timestamp>",
            "list<string>.() list<string>",
            "list<bytes>.() list<bytes>",
        ],
    ),
    ("reverse", &["list<A>.() list<A>"]),
    ("distinct", &["list<A>.() list<A>"]),
    ("first", &["list<A>.() optional<A>"]),
    ("last", &["list<A>.() optional<A>"]),
    ("lists.range", &["(int) list<int>"]),
    ("find", &["string.(string) string"]),
    ("findAll", &["string.(string) list<string>", "string.(string, int) list<string>"]),
    ("sets.contains", &["(list<A>, list<A>) bool"]),
    ("sets.equivalent", &["(list<A>, list<A>) bool"]),
    ("sets.intersects", &["(list<A>, list<A>) bool"]),
    ("optional.of", &["(A) optional<A>"]),
    ("optional.ofNonZeroValue", &["(A) optional<A>"]),
    ("optional.none", &["() optional<A>"]),
    ("optional.unwrap", &["(list<optional<A>>) list<A>"]),
    ("unwrapOpt", &["list<optional<A>>.() list<A>"]),
    ("hasValue", &["optional<A>.() bool"]),
    ("value", &["optional<A>.() A"]),
    ("or", &["optional<A>.(optional<A>) optional<A>"]),
    ("orValue", &["optional<A>.(A) A"]),
    ("quantity", &["(string) quantity"]),
    ("isQuantity", &["(string) bool"]),
    ("sign", &["(quantity) int"]),
    ("isInteger", &["quantity.() bool"]),
    ("asInteger", &["quantity.() int"]),
    ("asApproximateFloat", &["quantity.() double"]),
    ("add", &["quantity.(quantity) quantity", "quantity.(int) quantity"]),
    ("sub", &["quantity.(quantity) quantity", "quantity.(int) quantity"]),
    ("isLessThan", &["quantity.(quantity) bool", "semver.(semver) bool"]),
    ("isGreaterThan", &["quantity.(quantity) bool", "semver.(semver) bool"]),
    ("compareTo", &["quantity.(quantity) int", "semver.(semver) int"]),
    ("semver", &["(string) semver", "(string, bool) semver"]),
    ("isSemver", &["(string) bool", "(string, bool) bool"]),
    ("major", &["semver.() int"]),
    ("minor", &["semver.() int"]),
    ("patch", &["semver.() int"]),
    ("format", &["string.(list<dyn>) string"]),
    ("format.named", &["(string) optional<format>"]),
    ("validate", &["format.(string) optional<list<string>>"]),
    ("format.dns1123Label", FORMAT),
    ("format.dns1123Subdomain", FORMAT),
    ("format.dns1035Label", FORMAT),
    ("format.qualifiedName", FORMAT),
    ("format.dns1123LabelPrefix", FORMAT),
    ("format.dns1123SubdomainPrefix", FORMAT),
    ("format.dns1035LabelPrefix", FORMAT),
    ("format.labelValue", FORMAT),
    ("format.uri", FORMAT),
    ("format.uuid", FORMAT),
    ("format.byte", FORMAT),
    ("format.date", FORMAT),
    ("format.datetime", FORMAT),
    ("url", &["(string) url"]),
    ("isURL", &["(string) bool"]),
    ("getScheme", &["url.() string"]),
    ("getHost", &["url.() string"]),
    ("getHostname", &["url.() string"]),
    ("getPort", &["url.() string"]),
    ("getEscapedPath", &["url.() string"]),
    ("getQuery", &["url.() map<string, list<string>>"]),
    ("ip", &["(string) ip", "cidr.() ip"]),
    ("isIP", &["(string) bool"]),
    ("ip.isCanonical", &["(string) bool"]),
    ("family", &["ip.() int"]),
    ("isUnspecified", &["ip.() bool"]),
    ("isLoopback", &["ip.() bool"]),
    ("isLinkLocalMulticast", &["ip.() bool"]),
    ("isLinkLocalUnicast", &["ip.() bool"]),
    ("isGlobalUnicast", &["ip.() bool"]),
    ("cidr", &["(string) cidr"]),
    ("isCIDR", &["(string) bool"]),
    ("containsIP", &["cidr.(string) bool", "cidr.(ip) bool"]),
    ("containsCIDR", &["cidr.(string) bool", "cidr.(cidr) bool"]),
    ("masked", &["cidr.() cidr"]),
    ("prefixLength", &["cidr.() int"]),
    ("jsonpatch.escapeKey", &["(string) string"]),
    ("path", &["authorizer.(string) pathcheck"]),
    ("group", &["authorizer.(string) groupcheck"]),
    ("serviceAccount", &["authorizer.(string, string) authorizer"]),
    ("resource", &["groupcheck.(string) resourcecheck"]),
    ("subresource", NARROWED),
    ("namespace", NARROWED),
    ("name", NARROWED),
    ("fieldSelector", NARROWED),
    ("labelSelector", NARROWED),
    ("check", &["pathcheck.(string) decision", "resourcecheck.(string) decision"]),
    ("errored", &["decision.() bool"]),
    ("error", &["decision.() string"]),
    ("allowed", &["decision.() bool"]),
    ("reason", &["decision.() string"]),
];

const ORDER: &[&str] = &[
    "(bool, bool) bool",
    "(bytes, bytes) bool",
    "(double, double) bool",
    "(double, int) bool",
    "(double, uint) bool",
    "(duration, duration) bool",
    "(int, double) bool",
    "(int, int) bool",
    "(int, uint) bool",
    "(string, string) bool",
    "(timestamp, timestamp) bool",
    "(uint, double) bool",
    "(uint, int) bool",
    "(uint, uint) bool",
];
const EXTREME: &[&str] = &[
    "list<int>.() int",
    "list<uint>.() uint",
    "list<double>.() double",
    "list<bool>.() bool",
    "list<duration>.() duration",
    "list<timestamp>.() timestamp",
    "list<string>.() string",
    "list<bytes>.() bytes",
];
const NARROWED: &[&str] = &["resourcecheck.(string) resourcecheck"];
const FORMAT: &[&str] = &["() format"];
const TIME: &[&str] = &["timestamp.() int", "timestamp.(string) int"];
const CLOCK: &[&str] = &["timestamp.() int", "timestamp.(string) int", "duration.() int"];

fn read(form: &str) -> Signature {
    let (mut arguments, rest) = match form.split_once(".(") {
        Some((target, rest)) => (vec![read_type(target)], rest),
        None => (Vec::new(), &form[1..]),
    };
    let is_member = !arguments.is_empty();
    let (listed, result) = rest.split_once(')').unwrap_or((rest, ""));
    arguments.extend(split(listed).map(read_type));
    Signature { is_member, arguments, result: read_type(result.trim()) }
}

/// Splits at commas that are not between angle brackets.
fn split(listed: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = listed.split(move |c| {
        depth += match c {
            '<' => 1,
            '>' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn read_type(name: &str) -> Type {
    if let Some((outer, inner)) = name.strip_suffix('>').and_then(|name| name.split_once('<')) {
        let mut inner = split(inner).map(read_type);
        let mut next = || inner.next().unwrap_or(Type::Dyn);
        return match outer {
            "list" => Type::list(next()),
            "optional" => Type::optional(next()),
            _ => Type::map(next(), next()),
        };
    }
    match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "type" => Type::OfTypes,
        "quantity" => Type::Opaque("kubernetes.Quantity"),
        "url" => Type::Opaque("kubernetes.URL"),
        "ip" => Type::Opaque("net.IP"),
        "cidr" => Type::Opaque("net.CIDR"),
        "semver" => Type::Opaque("kubernetes.Semver"),
        "format" => Type::Opaque("kubernetes.NamedFormat"),
        "authorizer" => AUTHORIZER,
        "pathcheck" => Type::Opaque("kubernetes.authorization.PathCheck"),
        "groupcheck" => Type::Opaque("kubernetes.authorization.GroupCheck"),
        "resourcecheck" => RESOURCE_CHECK,
        "decision" => Type::Opaque("kubernetes.authorization.Decision"),
        "A" => Type::Parameter('A'),
        "B" => Type::Parameter('B'),
        _ => Type::Dyn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_read() {
        let [first, second, ..] = signatures("_[_]") else { panic!("there are two") };
        let list = Type::list(Type::Parameter('A'));
        assert_eq!(
            (&first.arguments[..], &first.result),
            (&[list, Type::Int][..], &Type::Parameter('A'))
        );
        let map = Type::map(Type::Parameter('A'), Type::Parameter('B'));
        assert_eq!(second.arguments, [map, Type::Parameter('A')]);
        assert_eq!(signatures("optional.none")[0].arguments, []);
        assert!(signatures("nope").is_empty());
        for (name, forms) in FUNCTIONS {
            for form in signatures(name) {
                let has_dyn = form.arguments.contains(&Type::Dyn);
                assert!(
                    !has_dyn && (form.result != Type::Dyn || *name == "dyn"),
                    "{name}: {forms:?}"
                );
            }
        }
    }
}
