//! IP addresses and networks of them.

use std::fmt;
use std::net::IpAddr;

use homeostat_core::go_quote;

use crate::address;

/// An address without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip(pub(super) IpAddr);

/// An address and the number of bits that all addresses of its network share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(super) address: IpAddr,
    pub(super) length: u8,
}

/// Returns true if an address of IPv4 is written as one of IPv6.
fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

// === impl Ip ===

impl Ip {
    /// Reads an address without a zone; one of IPv4 must not be written as one of IPv6.
    ///
    /// # Errors
    ///
    /// Returns the text of the error.
    pub(super) fn read(text: &str) -> Result<Self, String> {
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
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Cidr ===

impl Cidr {
    /// Reads an address and a length.
    ///
    /// # Errors
    ///
    /// Returns the text of the error.
    pub(super) fn read(text: &str) -> Result<Self, String> {
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

    /// Returns the network with its first address.
    pub(super) fn masked(self) -> Self {
        Self { address: Self::network(self.address, self.length), ..self }
    }

    /// Returns true if the network has an address.
    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Self::network(self.address, self.length) == Self::network(address, self.length)
    }

    /// Returns true if the network has all addresses of another one.
    pub(super) fn contains_all(self, other: Self) -> bool {
        other.length >= self.length && self.contains(other.address)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
