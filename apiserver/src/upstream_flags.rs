//! Flags of kube-apiserver that users and test suites pass: what they mean here.

use std::collections::BTreeSet;

use anyhow::{Context as _, anyhow, bail};
use homeostat_apiserver::AdmissionPlugin;

/// The plugin that another flag switches on.
const QUOTAS: &str = "ResourceQuota";
/// Admission plugins of kube-apiserver 1.37 that the server does not have: they are off.
const ABSENT: [&str; 30] = [
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
    "ServiceAccount",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// Returns the plugins that the server has to switch off.
///
/// # Errors
///
/// Fails if a plugin is unknown, or if another flag switches it on.
pub(crate) fn disabled(plugins: &[String], quotas: bool) -> anyhow::Result<Vec<AdmissionPlugin>> {
    let mut disabled = Vec::new();
    for name in plugins.iter().map(String::as_str) {
        let plugin = AdmissionPlugin::ALL.into_iter().find(|plugin| plugin.name() == name);
        match (plugin, name) {
            (Some(plugin), _) => disabled.push(plugin),
            (None, QUOTAS) if quotas => {
                bail!("{QUOTAS} is disabled, but --quota-admission enables it")
            }
            (None, QUOTAS) => {}
            (None, absent) if ABSENT.contains(&absent) => {}
            (None, other) => bail!("the admission plugin {other} is unknown"),
        }
    }
    Ok(disabled)
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
    fn plugins_that_the_server_has_are_switched_off() {
        let off = |plugins: &[&str], quotas| disabled(&texts(plugins), quotas);
        assert_eq!(
            off(&["ServiceAccount", "LimitRanger", "ResourceQuota"], false).unwrap(),
            [AdmissionPlugin::LimitRanger]
        );
        for (plugin, expected) in
            [("ResourceQuota", "--quota-admission"), ("LimitRangr", "is unknown")]
        {
            let error = off(&[plugin], true).unwrap_err().to_string();
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
