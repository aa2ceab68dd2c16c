//! The projection of a service.

use serde::Deserialize;
use smol_str::SmolStr;

use super::Meta;
use crate::json;

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Service {
    /// Its metadata.
    #[serde(deserialize_with = "json::or_default")]
    pub metadata: Meta,
    /// Its specification.
    #[serde(deserialize_with = "json::or_default")]
    pub spec: ServiceSpec,
}

/// The specification of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ServiceSpec {
    /// The type: `NodePort` and `LoadBalancer` are charged.
    #[serde(rename = "type", deserialize_with = "json::or_default")]
    pub kind: SmolStr,
    /// The ports.
    #[serde(deserialize_with = "json::or_default")]
    pub ports: Vec<ServicePort>,
    /// False if a load balancer needs no node ports.
    pub allocate_load_balancer_node_ports: Option<bool>,
}

/// A port of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ServicePort {
    /// The node port; 0 if none is given.
    #[serde(deserialize_with = "json::or_default")]
    pub node_port: i32,
}
