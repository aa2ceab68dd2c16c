//! Blocks of PEM: the text form of certificates and keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN ";

/// A block: its kind, and the text between its first and its last line.
pub(crate) struct Block<'a> {
    pub(crate) kind: &'a str,
    pub(crate) content: &'a str,
}

/// Returns the blocks that have an end.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let starts = text.split(BEGIN).skip(1);
    let blocks = starts.filter_map(|block| {
        let (kind, rest) = block.split_once("-----")?;
        let (content, _) = rest.split_once(&format!("-----END {kind}-----"))?;
        Some(Block { kind, content })
    });
    blocks.collect()
}

// === impl Block ===

impl Block<'_> {
    /// Returns the content as bytes; `None` if it is not Base64.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let content: String = self.content.split_whitespace().collect();
        STANDARD.decode(content).ok()
    }
}
