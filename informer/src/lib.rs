//! Informers for Kubernetes controllers.
