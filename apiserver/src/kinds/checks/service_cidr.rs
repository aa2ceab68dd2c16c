//! Ranges of the addresses of services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::{Causes, addresses, items, member};
use crate::fields::Fields;
use crate::status::Cause;

/// The address and the prefix length of a range of addresses.
type Range = (IpAddr, u32);

const AT: &str = "spec.cidrs";

pub(crate) fn service_cidr(range: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let ranges = member(range.get("spec").unwrap_or(&Value::Null), "cidrs");
    let Some(old) = old else {
        check(ranges, causes);
        return;
    };
    let before = items(member(old.get("spec").unwrap_or(&Value::Null), "cidrs"));
    let (found, is_new) = (items(ranges), items(ranges).len() != before.len());
    if is_new && (before.len(), found.len()) != (1, 2) {
        causes.push(Cause::invalid(AT, ranges, "field is immutable"));
        return;
    }
    for (place, (new, _)) in
        found.iter().zip(before).enumerate().filter(|(_, (new, old))| new != old)
    {
        causes.push(Cause::invalid(format!("{AT}[{place}]"), new, "field is immutable"));
    }
    if is_new {
        check(ranges, causes);
    }
}

/// Checks a range, or one of each family.
fn check(ranges: &Value, causes: Causes<'_>) {
    let all = items(ranges);
    if all.is_empty() {
        causes.push(Cause::required(AT, "at least one CIDR required"));
    }
    if all.len() > 2 {
        let shown = json!({"CIDRs": ranges});
        causes.push(Cause::invalid(AT, &shown, "may only hold up to 2 values"));
        return;
    }
    for (place, range) in all.iter().enumerate() {
        if let Some(detail) = problem(range.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(format!("{AT}[{place}]"), range, &detail));
        }
    }
    let is_ipv6 = |range: &Value| range.as_str().is_some_and(|range| range.contains(':'));
    let is_range = |range: &Value| range.as_str().and_then(read_range).is_some();
    if let [first, second] = all
        && is_range(first)
        && is_range(second)
        && is_ipv6(first) == is_ipv6(second)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        causes.push(Cause::invalid(AT, ranges, detail));
    }
}

/// Reads a range of addresses, such as `10.9.8.0/24`, in any form.
pub(super) fn read_range(text: &str) -> Option<Range> {
    let (address, bits) = text.split_once('/')?;
    let (address, length) = (address.parse::<IpAddr>().ok()?, bits.parse::<u32>().ok()?);
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

/// Returns what is wrong with a range (`IsValidCIDR`).
fn problem(text: &str) -> Option<String> {
    if let Some(problem) = legacy_problem(text) {
        return Some(problem.to_owned());
    }
    let (address, length) = read_range(text)?;
    let canonical = format!("{}/{length}", first_address(address, length));
    (canonical != text).then(|| format!("must be in canonical form (\"{canonical}\")"))
}

/// Returns what is wrong with a range in an older field, where it may have any form
/// (`IsValidCIDRForLegacyField`).
pub(super) fn legacy_problem(text: &str) -> Option<&'static str> {
    const NO_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let Ok(read) = address.parse::<IpAddr>() else {
        let has_zeros = addresses::ip_problem(address) == addresses::LEADING_ZEROS;
        return Some(if has_zeros { ZEROS } else { NO_RANGE });
    };
    let Some((_, length)) = read_range(text) else { return Some(NO_RANGE) };
    if bits.len() > 1 && bits.starts_with('0') {
        Some(ZEROS)
    } else if matches!(read, IpAddr::V6(read) if read.to_ipv4_mapped().is_some()) {
        Some("must not have an IPv4-mapped IPv6 address")
    } else if first_address(read, length) != read {
        Some("must not have bits set beyond the prefix length")
    } else {
        None
    }
}

/// Returns true if the second range contains the first one, and is larger.
pub(super) fn is_strict_subset((part, part_length): Range, (whole, length): Range) -> bool {
    part.is_ipv4() == whole.is_ipv4()
        && length < part_length
        && first_address(part, length) == first_address(whole, length)
}

const ZEROS: &str = "must not have leading 0s in IP or prefix length";

/// Returns the first address of a range.
fn first_address(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}
