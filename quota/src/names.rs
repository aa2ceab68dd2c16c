//! The names that a quota may have, and their classes.

use homeostat_core::GroupResource;
use homeostat_quantity::ResourceName;

/// The prefix of resources on which a pod's request is charged.
pub(crate) const REQUESTS: &str = "requests.";
/// The prefix of huge pages.
pub(crate) const HUGE_PAGES: &str = "hugepages-";
/// The prefix of the extended resource that each device class has.
pub(crate) const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// The name of a quota for the extended resource that each device class has.
pub(crate) const REQUESTS_DEVICE_CLASS: &str = "requests.deviceclass.resource.kubernetes.io/";
/// The suffix of a quota for the devices of a class.
pub(crate) const DEVICES_OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// The middle of a quota for the claims of a storage class.
pub(crate) const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// Returns the name under which the objects of a resource are counted: `count/<resource>.<group>`.
///
/// ```
/// use homeostat_core::GroupResource;
/// use homeostat_quota::object_count_name;
///
/// assert_eq!(object_count_name(&GroupResource::new("", "pods")), "count/pods");
/// let deployments = GroupResource::new("apps", "deployments");
/// assert_eq!(object_count_name(&deployments), "count/deployments.apps");
/// ```
pub fn object_count_name(resource: &GroupResource) -> ResourceName {
    ResourceName::from(format!("count/{resource}"))
}

/// Returns `<prefix><name>`.
pub(crate) fn joined(prefix: &str, name: &str) -> ResourceName {
    ResourceName::from([prefix, name].concat())
}

/// Returns true for a name of Kubernetes itself: without a domain, or in a domain of
/// `kubernetes.io/`.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns true for a resource of a pod that is charged as an extended resource.
pub(crate) fn is_extended(name: &str) -> bool {
    if name.starts_with(DEVICE_CLASS) {
        return true;
    }
    !is_native(name) && !name.starts_with(REQUESTS) && is_qualified(&[REQUESTS, name].concat())
}

/// Returns true for a name of a quota for an extended resource.
pub(crate) fn is_extended_for_quota(name: &str) -> bool {
    let is_extended = !is_native(name) || name.starts_with(REQUESTS_DEVICE_CLASS);
    is_extended && name.starts_with(REQUESTS)
}

/// Returns true for a qualified name: a DNS subdomain, `/`, and up to 63 characters
/// (`validation.IsQualifiedName`).
fn is_qualified(name: &str) -> bool {
    match name.split_once('/') {
        None => is_label(name) && !name.is_empty(),
        Some((domain, name)) => is_subdomain(domain) && is_label(name) && !name.is_empty(),
    }
}

/// Returns true for a label value: empty, or at most 63 of `[-_.A-Za-z0-9]` with a letter or digit
/// at both ends.
pub(crate) fn is_label(value: &str) -> bool {
    value.len() <= 63 && is_label_text(value)
}

/// Returns true for a text of the characters of a label value.
pub(crate) fn is_label_text(value: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    bytes.iter().all(|byte| inside(*byte)) && ends(bytes.first()) && ends(bytes.last())
}

fn is_subdomain(domain: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(inside)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    domain.len() <= 253 && domain.split('.').all(is_part)
}
