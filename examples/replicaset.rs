//! A ReplicaSet controller and an API server in one process.

fn main() {}
