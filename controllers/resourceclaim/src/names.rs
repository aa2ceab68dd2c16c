//! Names of generated claims. Pure.
//!
//! A name is derived from the pod's UID and the entry. Repeating a create whose reply was lost gets
//! 409, not a second claim. Upstream lets the server generate the name.

use std::hash::Hasher;

/// The longest readable prefix, as upstream's `maxBaseLen`: 63 characters less the suffix.
const PREFIX: usize = 57;

/// The number of characters of the hash.
const SUFFIX: usize = 6;

/// The characters of generated names in Kubernetes: without vowels and without digits that look
/// like them.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the name of the claim for `entry` of the pod with this name and UID.
///
/// `salt` is 0, and is raised while another object has the name.
///
/// # Examples
///
/// ```
/// use homeostat_resourceclaim::names::claim_name;
///
/// let name = claim_name("web", "5f1b6a5e", "gpu", 0);
/// assert!(name.starts_with("web-gpu-"));
/// assert_eq!(name, claim_name("web", "5f1b6a5e", "gpu", 0), "a repeated create");
/// assert_ne!(name, claim_name("web", "another", "gpu", 0));
/// ```
pub fn claim_name(pod: &str, uid: &str, entry: &str, salt: u32) -> String {
    let mut name = prefix(pod, entry);
    let mut hash = hash(uid, entry, salt);
    for _ in 0..SUFFIX {
        let (rest, digit) = (hash / 27, hash % 27);
        hash = rest;
        name.push(char::from(ALPHABET[usize::try_from(digit).unwrap_or_default()]));
    }
    name
}

/// Returns the prefix `<pod>-<entry>-`.
///
/// If it is too long, both parts are cut in proportion to their lengths, and no dash follows. A cut
/// is not made inside of a character, and no cut part ends with `.` or `-`.
fn prefix(pod: &str, entry: &str) -> String {
    let full = format!("{pod}-{entry}-");
    if full.len() <= PREFIX {
        return full;
    }
    let cut = |part: &str| {
        let mut end = part.len() * PREFIX / full.len();
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        part[..end].trim_end_matches(['.', '-']).to_owned()
    };
    let parts = [cut(pod), cut(entry)];
    // A name cannot start with a dash: a part that is cut to nothing has none.
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// Returns a hash that is the same in every version of this program.
fn hash(uid: &str, entry: &str, salt: u32) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(uid.as_bytes());
    hasher.write(&[0]);
    hasher.write(entry.as_bytes());
    hasher.write(&[0]);
    hasher.write(&salt.to_le_bytes());
    hasher.finish()
}

/// FNV-1a of 64 bits, with a last step that mixes the upper bits into the lower ones.
struct Fnv(u64);

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ (mixed >> 33)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_name_keeps_both_parts() {
        assert_eq!(prefix("web", "gpu"), "web-gpu-");
        assert_eq!(claim_name("web", "uid", "gpu", 0), "web-gpu-6lkjfc", "it never changes");
    }

    #[test]
    fn name_depends_on_uid_entry_and_salt() {
        let name = |uid, entry, salt| claim_name("web", uid, entry, salt);
        let names = [name("u", "e", 0), name("v", "e", 0), name("u", "f", 0), name("u", "e", 1)];
        let suffixes: Vec<_> = names.iter().map(|name| &name[name.len() - SUFFIX..]).collect();
        for (n, suffix) in suffixes.iter().enumerate() {
            assert!(!suffixes[..n].contains(suffix), "{names:?}");
        }
    }

    #[test]
    fn long_names_are_cut_in_proportion() {
        let (pod, entry) = ("p".repeat(90), "c".repeat(30));
        assert_eq!(prefix(&pod, &entry), format!("{}-{}", "p".repeat(42), "c".repeat(14)));
    }

    #[test]
    fn no_cut_part_ends_with_dot_or_dash() {
        let pod = format!("{}.-{}", "p".repeat(41), "p".repeat(48));
        let entry = format!("{}--{}", "c".repeat(12), "c".repeat(15));
        assert_eq!(prefix(&pod, &entry), format!("{}-{}", "p".repeat(41), "c".repeat(12)));
        assert_eq!(prefix("p", &"c".repeat(63)), "c".repeat(54), "a part may vanish");
    }

    proptest! {
        #[test]
        fn every_name_is_a_dns_subdomain(
            pod in proptest::collection::vec("[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?", 1..6),
            entry in "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
            salt: u32,
        ) {
            let pod = pod.join(".");
            let name = claim_name(&pod, "uid", &entry, salt);
            prop_assert!(name.len() <= 63 , "{name}");
            for label in name.split('.') {
                let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
                prop_assert!(label.starts_with(is_edge) && label.ends_with(is_edge), "{name}");
            }
        }

        #[test]
        fn no_name_panics(pod: String, uid: String, entry: String, salt: u32) {
            prop_assert!(claim_name(&pod, &uid, &entry, salt).len() >= SUFFIX);
        }
    }
}
