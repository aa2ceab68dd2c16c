//! What whole clusters are put through.
