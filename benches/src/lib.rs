//! Benchmarks of homeostat; see `benches/peers/` for the same work done by others.
