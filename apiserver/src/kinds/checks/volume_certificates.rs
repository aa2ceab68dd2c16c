//! Certificates as files of a projected volume.

use serde_json::{Value, json};

use super::Test::{By, Required};
use super::certificates::signer;
use super::projected_files::ProjectedFiles;
use super::{Check, check_text, internal, member, paths, selectors, text};
use crate::names;
use crate::status::Cause;

/// A bundle of trusted certificates.
pub(super) const BUNDLE: &[Check] =
    &[("", By(bundle)), ("path", Required("")), ("path", By(paths::not_reserved))];

const KEY_TYPES: &[&str] =
    &["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

fn bundle(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [name, signer_name] = ["name", "signerName"].map(|key| member(source, key));
    match (name.is_null(), signer_name.is_null()) {
        (true, true) => {
            causes.push(Cause::required(at, "either name or signerName must be specified"));
        }
        (false, false) => {
            let shown = internal("core.ClusterTrustBundleProjection", source);
            let detail = "only one of name and signerName may be used";
            causes.push(Cause::invalid(at, &shown, detail));
        }
        (false, true) => named(source, at, causes),
        (true, false) => {
            let signer_at = format!("{at}.signerName");
            if text(source, "signerName").is_empty() {
                causes.push(Cause::required(&*signer_at, "must be a valid signer name"));
            }
            signer(source, signer_name, &signer_at, causes);
            let selector = member(source, "labelSelector");
            selectors::selector(source, selector, &format!("{at}.labelSelector"), causes);
        }
    }
}

/// Checks a bundle that is chosen by its name, whose part before the last colon is the signer.
fn named(source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = text(source, "name");
    let name_at = format!("{at}.name");
    if name.is_empty() {
        causes.push(Cause::required(&*name_at, "must be a valid object name"));
    }
    let own = name.rsplit_once(':').map_or(name, |(_, own)| own);
    for problem in names::dns_subdomain(own) {
        let detail = format!("not a valid clustertrustbundlename: {problem}");
        causes.push(Cause::invalid(&*name_at, &json!(name), &detail));
    }
    let selector = member(source, "labelSelector");
    if !selector.is_null() {
        let detail = "labelSelector must be unset if name is specified";
        causes.push(Cause::invalid(format!("{at}.labelSelector"), selector, detail));
    }
}

/// Checks the certificate of the pod, which has one to three files.
pub(super) fn certificate<'a>(
    source: &'a Value,
    files: &mut ProjectedFiles<'a>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    const FILES: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];
    const CERTIFICATE: &[Check] = &[
        ("signerName", By(signer)),
        ("userAnnotations", By(annotations)),
        ("keyType", By(key_type)),
        ("", By(expiration)),
    ];
    super::run(CERTIFICATE, source, at, causes);
    let mut count = 0;
    for key in FILES.iter().filter(|key| !text(source, key).is_empty()) {
        count += 1;
        paths::not_reserved(source, member(source, key), &format!("{at}.{key}"), causes);
        let path = text(source, key);
        files.claim(path, path, causes);
    }
    if count == 0 {
        let detail =
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        causes.push(Cause::required(at, detail));
    }
}

fn annotations(_: &Value, annotations: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (key, _) in annotations.as_object().into_iter().flatten() {
        check_text(&json!(key.to_lowercase()), names::domain_prefixed, at, causes);
    }
}

fn key_type(_: &Value, kind: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kind = kind.as_str().unwrap_or_default();
    if !KEY_TYPES.contains(&kind) {
        causes.push(Cause::unsupported(at, &json!(kind), KEY_TYPES));
    }
}

fn expiration(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const SHORTEST: i64 = 60 * 60;
    const LONGEST: i64 = 91 * 24 * 60 * 60;
    const LONGEST_OF_KUBERNETES: i64 = 24 * 60 * 60;
    let seconds = member(source, "maxExpirationSeconds");
    let Some(given) = seconds.as_i64() else { return };
    let at = format!("{at}.maxExpirationSeconds");
    let signer = text(source, "signerName");
    let host = signer.split_once('/').map_or(signer, |(host, _)| host);
    let is_own = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    let longest = if is_own { LONGEST_OF_KUBERNETES } else { LONGEST };
    let detail = if given < SHORTEST {
        "if provided, maxExpirationSeconds must be >= 3600".to_owned()
    } else if given > longest {
        format!("if provided, maxExpirationSeconds must be <= {longest}")
    } else {
        return;
    };
    causes.push(Cause::invalid(at, seconds, &detail));
}
