//! The functions of URLs, IP addresses and CIDRs.

use std::net::IpAddr;
use std::rc::Rc;

use super::{Result, urls};
use crate::cel::error::EvalError;
use crate::cel::ip::{Cidr, Ip};
use crate::cel::value::Value;
use crate::url::{self, Url};

pub(super) fn call<'a>(name: &str, is_member: bool, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    match arguments {
        [Value::String(text)] if !is_member => of_text(name, text),
        [Value::Url(url)] => urls::call(url, name).map(Ok),
        [Value::Ip(ip)] => property(*ip, name).map(Ok),
        [Value::Cidr(cidr), rest @ ..] => call_of_cidr(*cidr, name, rest),
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

fn property<'a>(Ip(address): Ip, name: &str) -> Option<Value<'a>> {
    let is_link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    };
    let is_link_local_multicast = match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    };
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
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

fn call_of_cidr<'a>(cidr: Cidr, name: &str, rest: &[Value<'a>]) -> Option<Result<'a>> {
    // As upstream, a text that is no address fits no form of the function.
    let invalid = |_| Err(EvalError::no_such_overload());
    Some(match (name, rest) {
        ("containsIP", [Value::Ip(ip)]) => Ok(Value::Bool(cidr.contains(ip.0))),
        ("containsIP", [Value::String(text)]) => {
            Ip::read(text).map_or_else(invalid, |ip| Ok(Value::Bool(cidr.contains(ip.0))))
        }
        ("containsCIDR", [Value::Cidr(other)]) => Ok(Value::Bool(cidr.contains_all(*other))),
        ("containsCIDR", [Value::String(text)]) => {
            let other = Cidr::read(text).map_err(|problem| {
                let begin = "network address parse error during conversion from string";
                EvalError::new(format!("{begin}: {problem}"))
            });
            other.map(|other| Value::Bool(cidr.contains_all(other)))
        }
        ("ip", []) => Ok(Value::Ip(Ip(cidr.address))),
        ("masked", []) => Ok(Value::Cidr(cidr.masked())),
        ("prefixLength", []) => Ok(Value::Int(cidr.length.into())),
        _ => return None,
    })
}
