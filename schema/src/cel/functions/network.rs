//! The functions of URLs, IP addresses and CIDRs.

use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;

use homeostat_core::go_quote;

use super::Result;
use super::urls;
use crate::address;
use crate::cel::error::EvalError;
use crate::cel::value::Value;
use crate::url::{self, Url};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip(IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    length: u8,
}

pub(super) fn call<'a>(name: &str, is_member: bool, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    match arguments {
        [Value::String(text)] if !is_member => of_text(name, text),
        [Value::Url(url)] => urls::call(url, name).map(Ok),
        [Value::Ip(ip)] => ip.property(name).map(Ok),
        [Value::Cidr(cidr), rest @ ..] => cidr.call(name, rest),
        _ => None,
    }
}

fn of_text<'a>(name: &str, text: &str) -> Option<Result<'a>> {
    let parse_error = "parse error during conversion from string";
    Some(match name {
        "url" => Url::read(text)
            .map(|url| Value::Url(Rc::new(url)))
            .map_err(|problem| EvalError::new(format!("URL {parse_error}: {problem}"))),
        "isURL" => Ok(Value::Bool(url::check(text).is_ok())),
        "ip" => Ip::read(text).map(Value::Ip).map_err(EvalError::new),
        "isIP" => Ok(Value::Bool(Ip::read(text).is_ok())),
        "ip.isCanonical" => {
            let ip = Ip::read(text).map_err(EvalError::new);
            ip.map(|ip| Value::Bool(ip.to_string() == text))
        }
        "cidr" => Cidr::read(text)
            .map(Value::Cidr)
            .map_err(|problem| EvalError::new(format!("network address {parse_error}: {problem}"))),
        "isCIDR" => Ok(Value::Bool(Cidr::read(text).is_ok())),
        _ => return None,
    })
}

/// Returns whether an address of IPv4 is written as one of IPv6.
fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

// === impl Ip ===

impl Ip {
    /// Reads an address without a zone; one of IPv4 must not be written as one of IPv6.
    fn read(text: &str) -> std::result::Result<Self, String> {
        let shown = go_quote(text);
        let (address, has_zone) = address::parse(text).map_err(|problem| {
            format!("IP Address {shown} parse error during conversion from string: {problem}")
        })?;
        if has_zone {
            return Err(format!("IP address {shown} with zone value is not allowed"));
        }
        if is_mapped(address) {
            return Err(format!("IPv4-mapped IPv6 address {shown} is not allowed"));
        }
        Ok(Self(address))
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
    fn read(text: &str) -> std::result::Result<Self, String> {
        let (address, length) = address::parse_prefix(text).map_err(|problem| {
            format!("network address parse error during conversion from string: {problem}")
        })?;
        if is_mapped(address) {
            return Err(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)));
        }
        Ok(Self { address, length })
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
        // As upstream, a text that is no address fits no form of the function.
        let invalid = |_| Err(EvalError::no_such_overload());
        let inside = |other: Self| other.length >= self.length && self.contains(other.address);
        Some(match (name, rest) {
            ("containsIP", [Value::Ip(ip)]) => Ok(Value::Bool(self.contains(ip.0))),
            ("containsIP", [Value::String(text)]) => {
                Ip::read(text).map_or_else(invalid, |ip| Ok(Value::Bool(self.contains(ip.0))))
            }
            ("containsCIDR", [Value::Cidr(other)]) => Ok(Value::Bool(inside(*other))),
            ("containsCIDR", [Value::String(text)]) => {
                let other = Self::read(text).map_err(|problem| {
                    let begin = "network address parse error during conversion from string";
                    EvalError::new(format!("{begin}: {problem}"))
                });
                other.map(|other| Value::Bool(inside(other)))
            }
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
