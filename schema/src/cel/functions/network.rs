//! URLs, IP addresses and CIDRs.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::value::Value;

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    /// The name and the port.
    host: String,
    path: String,
    query: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip(IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    length: u8,
}

/// Returns whether a text is a URL.
pub(super) fn is_url(text: &str) -> bool {
    Url::read(text).is_some()
}

pub(super) fn call<'a>(name: &str, is_member: bool, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    match arguments {
        [Value::String(text)] if !is_member => of_text(name, text),
        [Value::Url(url)] => url.part(name).map(Ok),
        [Value::Ip(ip)] => ip.property(name).map(Ok),
        [Value::Cidr(cidr), rest @ ..] => cidr.call(name, rest),
        _ => None,
    }
}

fn of_text<'a>(name: &str, text: &str) -> Option<Result<'a>> {
    let shown = || crate::field_error::quote(text);
    Some(match name {
        "url" => Url::read(text).map(|url| Value::Url(Rc::new(url))).ok_or_else(|| {
            EvalError::new(format!(
                "URL parse error during conversion from string: parse {}: invalid URI for request",
                shown()
            ))
        }),
        "isURL" => Ok(Value::Bool(Url::read(text).is_some())),
        "ip" => Ip::read(text).map(Value::Ip).ok_or_else(|| {
            EvalError::new(format!(
                "IP Address {} parse error during conversion from string: ParseAddr({}): unable to \
                 parse IP",
                shown(),
                shown()
            ))
        }),
        "isIP" => Ok(Value::Bool(Ip::read(text).is_some())),
        "ip.isCanonical" => match Ip::read(text) {
            Some(ip) => Ok(Value::Bool(ip.to_string() == text)),
            None => Err(EvalError::new(format!("IP Address {} parse error", shown()))),
        },
        "cidr" => Cidr::read(text).map(Value::Cidr).ok_or_else(|| {
            EvalError::new(format!(
                "network address parse error during conversion from string: {}",
                shown()
            ))
        }),
        "isCIDR" => Ok(Value::Bool(Cidr::read(text).is_some())),
        _ => return None,
    })
}

// === impl Url ===

impl Url {
    /// Reads an absolute URL, or an absolute path, as Go's `ParseRequestURI` does.
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() || text.contains(|c: char| c.is_ascii_control() || c == ' ') {
            return None;
        }
        let is_path = text.starts_with('/');
        let (scheme, rest) = if is_path { ("", text) } else { text.split_once(':')? };
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_path && (!is_scheme || !scheme.chars().all(known)) {
            return None;
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None if rest.starts_with('/') => ("", rest),
            // An opaque address, such as `mailto:a`, has neither.
            None => ("", ""),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let port = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        if port.is_some_and(|(_, port)| !port.chars().all(|c| c.is_ascii_digit())) {
            return None;
        }
        let owned = str::to_owned;
        Some(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: owned(host),
            path: owned(path),
            query: owned(query),
        })
    }

    fn port(&self) -> Option<(&str, &str)> {
        self.host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'))
    }

    fn part<'a>(&self, name: &str) -> Option<Value<'a>> {
        Some(match name {
            "getScheme" => Value::text(self.scheme.as_str()),
            "getHost" => Value::text(self.host.as_str()),
            "getHostname" => {
                let host = self.port().map_or(self.host.as_str(), |(host, _)| host);
                Value::text(host.trim_start_matches('[').trim_end_matches(']'))
            }
            "getPort" => Value::text(self.port().map_or("", |(_, port)| port)),
            "getEscapedPath" => Value::text(self.path.as_str()),
            "getQuery" => self.values(),
            _ => return None,
        })
    }

    fn values<'a>(&self) -> Value<'a> {
        let mut found: Vec<(String, Vec<Value<'a>>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (unescape(key), Value::text(unescape(value)));
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, values)) => values.push(value),
                None => found.push((key, vec![value])),
            }
        }
        let entry = |(key, values): (String, _)| (Value::text(key), Value::list(values));
        Value::Map(Rc::new(found.into_iter().map(entry).collect()))
    }
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, code.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

// === impl Ip ===

impl Ip {
    /// Reads an address without a zone; one of IPv4 must not be written as one of IPv6.
    fn read(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        (!is_mapped).then_some(Self(address))
    }

    fn property<'a>(self, name: &str) -> Option<Value<'a>> {
        let is_link_local = match self.0 {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
        };
        let is_link_local_multicast = match self.0 {
            IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
            IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
        };
        let address = self.0;
        let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
        let is_special =
            address.is_unspecified() || address.is_loopback() || address.is_multicast();
        Some(match name {
            "family" => Value::Int(if address.is_ipv4() { 4 } else { 6 }),
            "isUnspecified" => Value::Bool(address.is_unspecified()),
            "isLoopback" => Value::Bool(address.is_loopback()),
            "isLinkLocalMulticast" => Value::Bool(is_link_local_multicast),
            "isLinkLocalUnicast" => Value::Bool(is_link_local),
            "isGlobalUnicast" => Value::Bool(!is_special && !is_link_local && !is_broadcast),
            _ => return None,
        })
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Cidr ===

impl Cidr {
    fn read(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let Ip(address) = Ip::read(address)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_plain = length == "0" || !length.starts_with(['0', '+']);
        let length: u8 = length.parse().ok()?;
        (is_plain && length <= most).then_some(Self { address, length })
    }

    /// Returns the first bits of an address, which all addresses of the network share.
    fn network(address: IpAddr, length: u8) -> IpAddr {
        match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(u32::from(32 - length)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(u32::from(128 - length)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self::network(self.address, self.length) == Self::network(address, self.length)
    }

    fn call<'a>(self, name: &str, rest: &[Value<'a>]) -> Option<Result<'a>> {
        let invalid = |text: &str| {
            let shown = crate::field_error::quote(text);
            Err(EvalError::new(format!(
                "network address parse error during conversion from string: {shown}"
            )))
        };
        let inside = |other: Self| other.length >= self.length && self.contains(other.address);
        Some(match (name, rest) {
            ("containsIP", [Value::Ip(ip)]) => Ok(Value::Bool(self.contains(ip.0))),
            ("containsIP", [Value::String(text)]) => match Ip::read(text) {
                Some(ip) => Ok(Value::Bool(self.contains(ip.0))),
                None => invalid(text),
            },
            ("containsCIDR", [Value::Cidr(other)]) => Ok(Value::Bool(inside(*other))),
            ("containsCIDR", [Value::String(text)]) => match Self::read(text) {
                Some(other) => Ok(Value::Bool(inside(other))),
                None => invalid(text),
            },
            ("ip", []) => Ok(Value::Ip(Ip(self.address))),
            ("masked", []) => {
                let address = Self::network(self.address, self.length);
                Ok(Value::Cidr(Self { address, ..self }))
            }
            ("prefixLength", []) => Ok(Value::Int(self.length.into())),
            _ => return None,
        })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
