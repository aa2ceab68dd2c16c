//! The ReplicaSet controller.
