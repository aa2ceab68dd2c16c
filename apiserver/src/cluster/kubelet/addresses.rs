//! The addresses of simulated pods and nodes. Nothing listens there.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The addresses of all pods, so that no two have the same.
#[derive(Debug, Default)]
pub(super) struct PodAddresses {
    used: BTreeSet<Ipv4Addr>,
}

/// The network of pods, 10.128.0.0/9, and the number of its addresses.
const PODS: (Ipv4Addr, u32) = (Ipv4Addr::new(10, 128, 0, 0), 1 << 23);
/// The network of nodes: one that is reserved for tests.
const NODES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

// === impl PodAddresses ===

impl PodAddresses {
    /// Takes a free address. The search starts at a place that follows from the uid, so that equal
    /// runs have equal addresses.
    pub(super) fn take(&mut self, uid: &str) -> Ipv4Addr {
        let hash = uid
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let (first, count) = PODS;
        let at = |step: u32| u32::from(first) + 1 + hash.wrapping_add(step) % (count - 2);
        let free = |address: &Ipv4Addr| !self.used.contains(address);
        let address = (0..count).map(|step| Ipv4Addr::from(at(step))).find(free).unwrap_or(first);
        self.used.insert(address);
        address
    }

    /// Records an address that a pod has already.
    pub(super) fn keep(&mut self, address: Option<Ipv4Addr>) {
        self.used.extend(address);
    }

    /// Gives up the address of a pod that is gone.
    pub(super) fn release(&mut self, address: Option<Ipv4Addr>) {
        if let Some(address) = address {
            self.used.remove(&address);
        }
    }
}

/// Returns the address of the node at a position.
pub(super) fn of_node(position: usize) -> Ipv4Addr {
    let number = u32::try_from(position).unwrap_or(0) + 1;
    Ipv4Addr::from(u32::from(NODES) + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_addresses_of_their_own_until_they_are_gone() {
        let mut addresses = PodAddresses::default();
        let first = addresses.take("u1");
        let second = addresses.take("u1");
        assert_ne!(first, second);
        addresses.release(Some(first));
        assert_eq!(addresses.take("u1"), first);
        assert_eq!(of_node(0).to_string(), "198.18.0.1");
    }
}
