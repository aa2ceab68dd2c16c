//! The hash of the version in which objects are stored: `storageVersionHash` of discovery.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::kinds::{Kind, Kinds, Operations};

/// Kinds that the real server stores in an older version: group, kind and version. The embedded
/// server stores them in the version that it serves.
const OLDER: [(&str, &str, &str); 5] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition", "v1beta1"),
    ("certificates.k8s.io", "ClusterTrustBundle", "v1beta1"),
    ("certificates.k8s.io", "PodCertificateRequest", "v1beta1"),
    ("resource.k8s.io", "DeviceTaintRule", "v1beta2"),
    ("storagemigration.k8s.io", "StorageVersionMigration", "v1beta1"),
];
/// The number of bytes of the hash that discovery shows.
const SHOWN: usize = 8;

/// Returns the hash for a kind; `None` if its objects are not stored.
pub(super) fn hash_of(kinds: &Kinds, kind: &Kind) -> Option<String> {
    if !matches!(kind.operations, Operations::All) {
        return None;
    }
    let home = kinds.find(&kind.group, &kind.version, &kind.plural)?.home;
    let older = OLDER.iter().find(|(group, name, _)| home.group == *group && home.kind == *name);
    let version = older.map_or(&*home.version, |(_, _, version)| version);
    let digest = sha256(format!("{}/{version}/{}", home.group, home.kind).as_bytes());
    Some(STANDARD.encode(&digest[..SHOWN]))
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
/// The same of the square roots of the first eight primes.
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Returns the SHA-256 of a text (FIPS 180-4). It protects nothing: clients compare it.
fn sha256(text: &[u8]) -> Vec<u8> {
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - text.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length_at = padded.len() - 8;
    padded[length_at..].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    let state = padded.chunks_exact(64).fold(START, compress);
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn compress(state: [u32; 8], block: &[u8]) -> [u32; 8] {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for at in 16..64 {
        let (near, far) = (words[at - 2], words[at - 15]);
        let near = near.rotate_right(17) ^ near.rotate_right(19) ^ (near >> 10);
        let far = far.rotate_right(7) ^ far.rotate_right(18) ^ (far >> 3);
        words[at] = words[at - 16].wrapping_add(far).wrapping_add(words[at - 7]).wrapping_add(near);
    }
    let mut sums = state;
    for (word, round) in words.iter().zip(ROUNDS) {
        let [low, high] = [sums[0], sums[4]];
        let mixed = high.rotate_right(6) ^ high.rotate_right(11) ^ high.rotate_right(25);
        let chosen = (high & sums[5]) ^ (!high & sums[6]);
        let next = sums[7].wrapping_add(mixed).wrapping_add(chosen).wrapping_add(round);
        let next = next.wrapping_add(*word);
        let mixed = low.rotate_right(2) ^ low.rotate_right(13) ^ low.rotate_right(22);
        let majority = (low & sums[1]) ^ (low & sums[2]) ^ (sums[1] & sums[2]);
        sums.rotate_right(1);
        sums[0] = next.wrapping_add(mixed).wrapping_add(majority);
        sums[4] = sums[4].wrapping_add(next);
    }
    for (sum, before) in sums.iter_mut().zip(state) {
        *sum = sum.wrapping_add(before);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &[u8]) -> String {
        let digits =
            |byte: &u8| [byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
        String::from_utf8(sha256(text).iter().flat_map(digits).collect()).unwrap()
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(b"abc"), abc);
        let two_blocks = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        let expected = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        assert_eq!(hex(two_blocks), expected);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(b""), empty);
    }

    #[test]
    fn hash_is_that_of_the_version_that_the_real_server_stores() {
        let kinds = Kinds::new(Vec::new());
        let hash = |group: &str, version: &str, plural: &str| {
            let served = kinds.find(group, version, plural).unwrap();
            hash_of(&kinds, &served.kind)
        };
        let events = Some("r2yiGXH7wu8=".to_owned());
        assert_eq!(hash("", "v1", "events"), events);
        assert_eq!(hash("events.k8s.io", "v1", "events"), events);
        let autoscalers = Some("qwQve8ut294=".to_owned());
        assert_eq!(hash("autoscaling", "v1", "horizontalpodautoscalers"), autoscalers);
        let definitions = Some("jfWCUB31mvA=".to_owned());
        assert_eq!(hash("apiextensions.k8s.io", "v1", "customresourcedefinitions"), definitions);
        assert_eq!(hash("", "v1", "bindings"), None);
    }
}
