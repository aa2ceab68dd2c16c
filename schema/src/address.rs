//! IP addresses and their prefixes, with the errors of Go's package `net/netip`.

use std::net::{IpAddr, Ipv4Addr};

use homeostat_core::go_quote;

/// The reason why a text is no address, and the part where it was found.
type Problem<'t> = (&'static str, Option<&'t str>);

/// Reads an address. True if it has a zone.
///
/// # Errors
///
/// Returns the text of Go's error.
pub(crate) fn parse(text: &str) -> Result<(IpAddr, bool), String> {
    let read = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => ipv4(text).map(|address| (address.into(), false)),
        Some(b':') => ipv6(text),
        Some(_) => Err(("missing IPv6 address", None)),
        None => Err(("unable to parse IP", None)),
    };
    read.map_err(|(problem, at)| {
        let at = at.map(|at| format!(" (at {})", go_quote(at))).unwrap_or_default();
        format!("ParseAddr({}): {problem}{at}", go_quote(text))
    })
}

/// Reads an address and the number of bits of its network.
///
/// # Errors
///
/// Returns the text of Go's error.
pub(crate) fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let failed = |problem: &str| format!("netip.ParsePrefix({}): {problem}", go_quote(text));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
    let (address, has_zone) = parse(address).map_err(|problem| failed(&problem))?;
    if has_zone {
        return Err(failed("IPv6 zones cannot be present in a prefix"));
    }
    let is_plain = !bits.is_empty()
        && bits.bytes().all(|digit| digit.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let bits: u64 = match bits.parse() {
        Ok(bits) if is_plain => bits,
        _ => return Err(failed(&format!("bad bits after slash: {}", go_quote(bits)))),
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = u8::try_from(bits).ok().filter(|bits| *bits <= most);
    bits.map(|bits| (address, bits)).ok_or_else(|| failed("prefix length out of range"))
}

fn ipv4(text: &str) -> Result<Ipv4Addr, Problem<'_>> {
    let mut fields = [0_u8; 4];
    let (mut position, mut value, mut digits) = (0, 0_u32, 0);
    for (at, c) in text.char_indices() {
        if let Some(digit) = c.to_digit(10) {
            if digits == 1 && value == 0 {
                return Err(("IPv4 field has octet with leading zero", None));
            }
            (value, digits) = (value * 10 + digit, digits + 1);
            fields[position] =
                u8::try_from(value).map_err(|_| ("IPv4 field has value >255", None))?;
        } else if c != '.' {
            return Err(("unexpected character", Some(&text[at..])));
        } else if digits == 0 || at + 1 == text.len() {
            return Err(("IPv4 field must have at least one digit", Some(&text[at..])));
        } else if position == 3 {
            return Err(("IPv4 address too long", None));
        } else {
            (position, value, digits) = (position + 1, 0, 0);
        }
    }
    if position < 3 { Err(("IPv4 address too short", None)) } else { Ok(fields.into()) }
}

/// Reads an address of IPv6 after its zone was cut off.
fn ipv6(text: &str) -> Result<(IpAddr, bool), Problem<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", None)),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    let mut gap = address.starts_with("::").then_some(0);
    let mut rest = address.strip_prefix("::").unwrap_or(address);
    while groups.len() < 8 && !(rest.is_empty() && gap == Some(groups.len())) {
        let (group, after) = group(rest)?;
        if after.starts_with('.') {
            let octets = embedded(rest, groups.len(), gap.is_some())?.octets();
            groups.extend(octets.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])));
            rest = "";
            break;
        }
        groups.push(group);
        rest = after;
        if after.is_empty() {
            break;
        }
        rest = match after.strip_prefix(':') {
            None => return Err(("unexpected character, want colon", Some(after))),
            Some("") => return Err(("colon must be followed by more characters", Some(after))),
            Some(next) => next,
        };
        if let Some(next) = rest.strip_prefix(':') {
            if gap.replace(groups.len()).is_some() {
                return Err(("multiple :: in address", Some(rest)));
            }
            rest = next;
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", Some(rest)));
    }
    Ok((IpAddr::from(without_gap(groups, gap)?), zone))
}

/// Reads a group of an IPv6 address. Returns it and the text after it.
fn group(text: &str) -> Result<(u16, &str), Problem<'_>> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    match end {
        0 => Err(("each colon-separated field must have at least one digit", Some(text))),
        1..=4 => Ok((u16::from_str_radix(&text[..end], 16).unwrap_or_default(), &text[end..])),
        _ => Err(("each group must have 4 or less digits", Some(text))),
    }
}

/// Fills the gap of an IPv6 address, which is before the group of this number, with zeros.
fn without_gap<'a>(mut groups: Vec<u16>, gap: Option<usize>) -> Result<[u16; 8], Problem<'a>> {
    match gap {
        None if groups.len() < 8 => return Err(("address string too short", None)),
        Some(_) if groups.len() == 8 => {
            return Err(("the :: must expand to at least one field of zeros", None));
        }
        None => {}
        Some(gap) => {
            let zeros = 8 - groups.len();
            groups.splice(gap..gap, std::iter::repeat_n(0, zeros));
        }
    }
    Ok(groups.try_into().unwrap_or_default())
}

/// Reads the address of IPv4 at the end of one of IPv6, after a number of groups.
fn embedded(text: &str, groups: usize, has_gap: bool) -> Result<Ipv4Addr, Problem<'_>> {
    if !has_gap && groups != 6 {
        let problem = "embedded IPv4 address must replace the final 2 fields of the address";
        return Err((problem, Some(text)));
    }
    if groups > 6 {
        let problem = "too many hex fields to fit an embedded IPv4 at the end of the address";
        return Err((problem, Some(text)));
    }
    ipv4(text)
}
