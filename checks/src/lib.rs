//! Checks of the repository itself. Needs no tool beyond Rust, and no dependency.
//!
//! * [`language`] reads rustdoc, comments, texts and Markdown, and reports words and sentence forms
//!   that `docs/style.md` rules out. `cargo run -q -p homeostat-checks -- [PATH…]` prints them.
//! * [`modules`] reads the `crate::` paths of one crate, and reports those that lead to a module of
//!   a higher rank. `checks/tests/modules.rs` holds one table per crate.
//! * [`circles`] finds modules of one folder, at any depth, that lead to each other.
//! * [`lexer`] splits Rust source into comments, string literals, words and punctuation for all.

pub mod circles;
mod imports;
pub mod language;
pub mod lexer;
pub mod modules;
mod walk;

pub use walk::{Source, root, sources};
