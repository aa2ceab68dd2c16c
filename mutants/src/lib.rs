//! Mutants: patches that break one promise each. The program of this crate expects the test that a
//! patch names to fail.

#![expect(
    clippy::disallowed_types,
    reason = "programs are measured in real time, without a runtime"
)]

pub mod cargo;
pub mod check;
pub mod mutant;
pub mod plan;
pub mod tree;
pub mod weave;
