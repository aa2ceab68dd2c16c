//! Blocks of certificates in PEM. The certificate in a block is not read.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::pem::{Block, blocks};

const CERTIFICATE: &str = "CERTIFICATE";

/// Returns the kind of the first block in a text in Base64.
pub(super) fn first_kind(encoded: &str) -> Option<String> {
    kinds(encoded).into_iter().next()
}

/// Returns the bytes in the first block of a text in Base64.
pub(super) fn first_content(encoded: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    blocks(&text).first()?.bytes()
}

/// Returns the kind of the first block in a text.
pub(super) fn first_kind_of_text(text: &str) -> Option<&str> {
    blocks(text).first().map(|block| block.kind)
}

/// Returns whether a text in Base64 is one sequence of ASN.1, whatever it contains.
pub(super) fn is_sequence(encoded: &str) -> bool {
    const SEQUENCE: u8 = 0x30;
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let Some((&SEQUENCE, rest)) = bytes.split_first() else { return false };
    let Some((&first, rest)) = rest.split_first() else { return false };
    // A short length is one byte; of a longer one the first byte has the number of bytes.
    if first < 0x80 {
        return usize::from(first) == rest.len();
    }
    let Some((length, content)) = rest.split_at_checked(usize::from(first & 0x7f)) else {
        return false;
    };
    let length = length.iter().fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
    length == content.len()
}

/// Returns what is wrong with certificates in Base64; none at all are right.
pub(super) fn problem_of_certificates(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let kinds = kinds(encoded);
    if let Some(other) = kinds.iter().find(|kind| *kind != CERTIFICATE) {
        return Some(format!("only CERTIFICATE PEM blocks are allowed, found \"{other}\""));
    }
    let none = "must contain at least one CERTIFICATE PEM block";
    kinds.is_empty().then(|| none.to_owned())
}

/// Returns what is wrong with a bundle of certificates.
pub(super) fn problems_of_bundle(bundle: &str) -> Vec<String> {
    let blocks = blocks(bundle);
    let problem = |(place, block): (usize, &Block<'_>)| {
        if block.kind != CERTIFICATE {
            Some(format!("entry {place} has bad block type: {}", block.kind))
        } else if block.content.contains(':') {
            Some(format!("entry {place} has PEM block headers"))
        } else {
            None
        }
    };
    let found: Vec<String> = blocks.iter().enumerate().filter_map(problem).collect();
    if !found.is_empty() {
        return found;
    }
    if blocks.is_empty() {
        return vec!["at least one trust anchor must be provided".to_owned()];
    }
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, block) in blocks.iter().enumerate() {
        let content = block.content.split_whitespace().collect();
        places.entry(content).or_default().push(place.to_string());
    }
    let repeated = places.into_values().filter(|places| places.len() > 1);
    let shown =
        |places: Vec<String>| format!("duplicate trust anchor (indices [{}])", places.join(" "));
    repeated.map(shown).collect()
}

/// Returns the kinds of the blocks in a text in Base64.
fn kinds(encoded: &str) -> Vec<String> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    blocks(&text).iter().map(|block| block.kind.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_blocks_are_read() {
        let encode = |kind: &str| {
            STANDARD.encode(format!("-----BEGIN {kind}-----\nYQ==\n-----END {kind}-----\n"))
        };
        assert_eq!(
            first_kind(&encode("CERTIFICATE REQUEST")).as_deref(),
            Some("CERTIFICATE REQUEST")
        );
        assert_eq!(first_kind("YWJj"), None);
        assert_eq!(problem_of_certificates(&encode("CERTIFICATE")), None);
        assert_eq!(first_kind_of_text("x"), None);
        assert!(is_sequence("MAIFAA==") && !is_sequence("YWJj") && !is_sequence("MAMFAA=="));
        assert_eq!(problem_of_certificates(""), None);
        assert!(problem_of_certificates("YWJj").unwrap().starts_with("must contain"));
        assert!(problem_of_certificates(&encode("X")).unwrap().ends_with("found \"X\""));
    }
}
