//! Blocks of certificates in PEM. Of a certificate, only the structure is read.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::access::{Certificate, is_malformed};
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

/// Returns the kinds and contents of the blocks in a text.
pub(super) fn contents(text: &str) -> Vec<(&str, Vec<u8>)> {
    let blocks = complete_blocks(text).into_iter();
    blocks.map(|block| (block.kind, block.bytes().unwrap_or_default())).collect()
}

/// Returns true if a text in Base64 is one sequence of ASN.1, whatever it contains.
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
    let text = decoded(encoded);
    let blocks = complete_blocks(&text);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(problem_of_certificate)
}

fn problem_of_certificate(block: &Block<'_>) -> Option<String> {
    if block.kind != CERTIFICATE {
        return Some(format!("only CERTIFICATE PEM blocks are allowed, found \"{}\"", block.kind));
    }
    if has_headers(block) {
        return Some("no PEM block headers are permitted".to_owned());
    }
    let bytes = block.bytes().unwrap_or_default();
    if bytes.is_empty() {
        return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
    }
    is_malformed(&bytes).then(|| "x509: malformed certificate".to_owned())
}

fn has_headers(block: &Block<'_>) -> bool {
    block.content.contains(':')
}

/// Returns the blocks whose content is Base64, perhaps after headers.
fn complete_blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = blocks(text);
    blocks.retain(|block| has_headers(block) || block.bytes().is_some());
    blocks
}

/// Returns what is wrong with a bundle of certificates.
pub(super) fn problems_of_bundle(bundle: &str) -> Vec<String> {
    let blocks = complete_blocks(bundle);
    let problem = |(place, block): (usize, &Block<'_>)| {
        if block.kind != CERTIFICATE {
            return Some(format!("entry {place} has bad block type: {}", block.kind));
        }
        if has_headers(block) {
            return Some(format!("entry {place} has PEM block headers"));
        }
        let bytes = block.bytes().unwrap_or_default();
        match Certificate::read(&bytes) {
            None => Some(format!("entry {place} does not parse as X.509")),
            Some(read) if read.is_authority => None,
            Some(_) => Some(format!("entry {place} does not have the CA bit set")),
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
    blocks(&decoded(encoded)).iter().map(|block| block.kind.to_owned()).collect()
}

fn decoded(encoded: &str) -> String {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
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
        let malformed = problem_of_certificates(&encode("CERTIFICATE"));
        assert_eq!(malformed.as_deref(), Some("x509: malformed certificate"));
        assert!(contents("x").is_empty());
        assert!(is_sequence("MAIFAA==") && !is_sequence("YWJj") && !is_sequence("MAMFAA=="));
        assert_eq!(problem_of_certificates(""), None);
        assert!(problem_of_certificates("YWJj").unwrap().starts_with("must contain"));
        assert!(problem_of_certificates(&encode("X")).unwrap().ends_with("found \"X\""));
    }
}
