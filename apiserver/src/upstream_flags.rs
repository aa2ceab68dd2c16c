//! Flags of kube-apiserver that users and test suites pass: what they mean here.

use std::collections::BTreeSet;

use anyhow::{Context as _, anyhow, bail};

/// Admission plugins whose work the server does, always.
const ALWAYS: [&str; 7] = [
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "LimitRanger",
    "NamespaceLifecycle",
    "PodResizeValidator",
    "Priority",
    "StorageObjectInUseProtection",
];
/// The plugin that another flag switches on.
const QUOTAS: &str = "ResourceQuota";
/// Admission plugins of kube-apiserver 1.37 that the server does not have: they are off.
const ABSENT: [&str; 31] = [
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodGroupProtection",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "RuntimeClass",
    "ServiceAccount",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Checks that the plugins are off.
///
/// # Errors
///
/// Fails if a plugin is unknown, or if the server does its work.
pub(crate) fn check_disabled(plugins: &[String], quotas: bool) -> anyhow::Result<()> {
    for plugin in plugins.iter().map(String::as_str) {
        match plugin {
            QUOTAS if quotas => bail!("{QUOTAS} is disabled, but --quota-admission enables it"),
            QUOTAS => {}
            always if ALWAYS.contains(&always) => {
                bail!("the admission plugin {always} cannot be disabled: its work is always done")
            }
            absent if ABSENT.contains(&absent) => {}
            other => bail!("the admission plugin {other} is unknown"),
        }
    }
    Ok(())
}

/// Returns the names of the feature gates that are set. The server has none: its features are those
/// of kube-apiserver with its default gates.
///
/// # Errors
///
/// Fails if a gate is not set to `true` or `false`.
pub(crate) fn ignored_gates(gates: &[String]) -> anyhow::Result<BTreeSet<&str>> {
    let name = |gate: &'_ String| -> anyhow::Result<()> {
        let (_, value) = gate.split_once('=').with_context(|| format!("no value for {gate}"))?;
        let is_boolean = matches!(value.to_ascii_lowercase().as_str(), "true" | "false");
        is_boolean.then_some(()).ok_or_else(|| anyhow!("{gate} is neither true nor false"))
    };
    gates.iter().try_for_each(name).context("invalid --feature-gates")?;
    Ok(gates.iter().filter_map(|gate| Some(gate.split_once('=')?.0)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_plugins_that_are_off_can_be_disabled() {
        let check = |plugin, quotas| check_disabled(&texts(&[plugin]), quotas);
        assert!(check("ServiceAccount", false).is_ok());
        assert!(check("ResourceQuota", false).is_ok());
        for (plugin, expected) in [
            ("ResourceQuota", "--quota-admission"),
            ("LimitRanger", "cannot be disabled"),
            ("LimitRangr", "is unknown"),
        ] {
            let error = check(plugin, true).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn feature_gates_are_named_once_and_need_a_value() {
        let gates = texts(&["A=true", "B=False", "A=false"]);
        assert_eq!(ignored_gates(&gates).unwrap(), BTreeSet::from(["A", "B"]));
        assert!(ignored_gates(&texts(&["A"])).is_err());
        assert!(ignored_gates(&texts(&["A=1"])).is_err());
    }
}
