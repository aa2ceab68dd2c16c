//! IP addresses.

use std::net::IpAddr;

use serde_json::Value;

use crate::status::Cause;

use super::Causes;

const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

pub(super) const LEADING_ZEROS: &str = "must not have leading 0s";

/// Checks an IP address in an older field, where it may have any form
/// (`IsValidIPForLegacyField`).
pub(super) fn address(address: &Value, at: &str, causes: Causes<'_>) {
    let text = address.as_str().unwrap_or_default();
    if let Err(detail) = read(text) {
        causes.push(Cause::invalid(at, &text.into(), detail));
    }
}

/// Checks an IP address that must have its canonical form (`IsValidIP`). Returns true if it has.
pub(super) fn canonical(address: &Value, at: &str, causes: Causes<'_>) -> bool {
    let text = address.as_str().unwrap_or_default();
    let found = read(text).map(|parsed| parsed.to_string());
    let detail = match found {
        Ok(canonical) if canonical == text => return true,
        Ok(canonical) => format!("must be in canonical form (\"{canonical}\")"),
        Err(detail) => detail.to_owned(),
    };
    causes.push(Cause::invalid(at, address, &detail));
    false
}

/// Reads an IP address.
///
/// # Errors
///
/// Returns what is wrong with it.
pub(super) fn read(text: &str) -> Result<IpAddr, &'static str> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(mapped)) if mapped.to_ipv4_mapped().is_some() => {
            Err("must not be an IPv4-mapped IPv6 address")
        }
        Ok(parsed) => Ok(parsed),
        Err(_) => Err(ip_problem(text)),
    }
}

/// Returns what is wrong with a text that is no IP address.
pub(crate) fn ip_problem(text: &str) -> &'static str {
    match without_zeros(text) {
        Some(_) => LEADING_ZEROS,
        None => NOT_AN_ADDRESS,
    }
}

/// Reads an IP address of any form, even one that is not valid any more.
pub(super) fn sloppy(text: &str) -> Option<IpAddr> {
    let parsed = text.parse().ok().or_else(|| without_zeros(text));
    parsed.map(|parsed| parsed.to_canonical())
}

/// Reads an IPv4 address with zeros before its numbers.
pub(super) fn without_zeros(text: &str) -> Option<IpAddr> {
    let shortened = text.split('.').map(|part| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0",
        short => short,
    });
    let shortened = shortened.collect::<Vec<_>>().join(".");
    shortened.parse().ok().filter(|_| shortened != text)
}

/// Checks that an address is not one for a special purpose (`ValidateEndpointIP`).
pub(super) fn not_special(address: &Value, at: &str, causes: Causes<'_>) {
    let text = address.as_str().unwrap_or_default();
    let Some(parsed) = text.parse().ok().or_else(|| without_zeros(text)) else {
        causes.push(Cause::invalid(at, &text.into(), "must be a valid IP address"));
        return;
    };
    let (is_local, is_local_multicast) = match parsed.to_canonical() {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => {
            (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02)
        }
    };
    let unspecified = format!("may not be unspecified ({text})");
    let local_multicast = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    let wrong = [
        (parsed.is_unspecified(), &*unspecified),
        (
            parsed.to_canonical().is_loopback(),
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ),
        (is_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (is_local_multicast, local_multicast),
    ];
    for (_, detail) in wrong.iter().filter(|(is_wrong, _)| *is_wrong) {
        causes.push(Cause::invalid(at, address, detail));
    }
}
