//! The command line of the `ReplicaSet` controller.

fn main() {}
