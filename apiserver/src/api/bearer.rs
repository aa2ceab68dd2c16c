//! The owners of bearer tokens: users, and service accounts that exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use homeostat_core::go_quote;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::managers::server_manager;
use super::server_objects;
use crate::access::{Claims, Holder, Named, SecretClaims, User, Verified};
use crate::admission::metadata_mut;
use crate::admission::target::Target;
use crate::clock::day;
use crate::core::Core;
use crate::fields::read_path;
use crate::object::Stored;

/// The owner of a valid token.
pub(super) struct Bearer {
    pub(super) user: Arc<User>,
    /// The audiences of the token among those that the caller names.
    pub(super) audiences: Vec<String>,
    /// A warning about the use of the token; often empty.
    pub(super) warning: &'static str,
}

/// The time for which a token outlives the deletion of an object that has finalizers.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);

/// The text about a token that nothing accepts.
const INVALID: &str = "invalid bearer token";
const INVALIDATED: &str = "service account token has been invalidated";

/// The label of a secret whose token may not be used any longer.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The label of a secret with the day on which its token was used last.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The warning about the token of a secret that its account names.
const GENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based \
    tokens instead of auto-generated secret-based tokens.";

/// Returns the owner of a token that is valid for the API server.
pub(super) fn own_bearer(core: &Core, token: &str) -> Option<Bearer> {
    let own = &core.access.issuer().settings().audiences;
    bearer_of(core, token, own).ok()
}

/// Returns the owner of a token that is valid for one of these audiences. The token of a service
/// account is valid while the account exists.
///
/// # Errors
///
/// Returns the reason why the token is not valid, in upstream's words.
pub(super) fn bearer_of(core: &Core, token: &str, wanted: &[String]) -> Result<Bearer, String> {
    let issuer = core.access.issuer();
    let for_server = || wanted.iter().filter(|audience| issuer.is_audience(audience));
    let user = core.access.user_of(token).filter(|_| for_server().next().is_some());
    if let Some(user) = user {
        return Ok(Bearer { user, audiences: for_server().cloned().collect(), warning: "" });
    }
    let detailed = |detail: String| format!("[{INVALID}, {detail}]");
    let Some(verified) = issuer.read(token).map_err(detailed)? else {
        return Err(INVALID.to_owned());
    };
    let known = match &verified {
        Verified::Requested(claims) if !claims.audiences.is_empty() => &claims.audiences,
        _ => &issuer.settings().audiences,
    };
    let audiences: Vec<String> =
        known.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
    if audiences.is_empty() {
        let (known, wanted) = (quoted_list(known), quoted_list(wanted));
        return Err(detailed(format!(
            "token audiences {known} is invalid for the target audiences {wanted}"
        )));
    }
    let found = match &verified {
        Verified::Requested(claims) => owner(core, claims).map(|user| (user, "")),
        Verified::OfSecret(claims) => owner_of_secret(core, claims, token),
    };
    let (user, warning) = found.map_err(detailed)?;
    Ok(Bearer { user: Arc::new(user), audiences, warning })
}

/// Returns the account of a requested token.
fn owner(core: &Core, claims: &Claims) -> Result<User, String> {
    let now = core.clock.now();
    claims.check_time(now)?;
    let Holder { namespace, node, pod, secret, account, .. } = &claims.holder;
    let stored = find_account(core, namespace, &account.name)?;
    let uid = &stored.selectable.uid;
    if *uid != account.uid {
        let claimed = &account.uid;
        return Err(format!("service account UID ({uid}) does not match claim ({claimed})"));
    }
    if is_deleted(&stored, now) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    let bound_node = node.as_ref().filter(|_| pod.is_none());
    for (resource, bound) in
        [("secrets", secret.as_ref()), ("pods", pod.as_ref()), ("nodes", bound_node)]
    {
        let Some(Named { name, uid }) = bound else { continue };
        let stored = core.find(resource, namespace, name).ok_or(INVALIDATED)?;
        let known = &stored.selectable.uid;
        if known != uid {
            // The resource without its plural `s`.
            let kind = &resource[..resource.len() - 1];
            let mut shown = kind.to_owned();
            shown[..1].make_ascii_uppercase();
            return Err(format!(
                "{shown} UID ({known}) does not match service account {kind} ref claim ({uid})"
            ));
        }
        if is_deleted(&stored, now) {
            return Err(INVALIDATED.to_owned());
        }
    }
    let mut user = User::service_account(namespace, &account.name);
    user.uid.clone_from(&account.uid);
    user.extra = extra(claims);
    Ok(user)
}

/// Returns the account of the token in a secret, and a warning about its use.
fn owner_of_secret(
    core: &Core,
    claims: &SecretClaims,
    token: &str,
) -> Result<(User, &'static str), String> {
    let SecretClaims { subject, namespace, secret, account, uid } = claims;
    let needed = [
        ("sub", subject),
        ("namespace", namespace),
        ("secretName", secret),
        ("serviceAccountName", account),
        ("serviceAccountUID", uid),
    ];
    if let Some((name, _)) = needed.iter().find(|(_, value)| value.is_empty()) {
        return Err(format!("{name} claim is missing"));
    }
    let mut user = User::service_account(namespace, account);
    if user.name() != subject {
        return Err("sub claim is invalid".to_owned());
    }
    let stored = find_secret(core, (namespace, secret), token)?;
    let owner = find_account(core, namespace, account)?;
    if owner.selectable.terminating {
        return Err(format!("ServiceAccount {namespace}/{account} has been deleted"));
    }
    let known = &owner.selectable.uid;
    if known != uid {
        return Err(format!("ServiceAccount UID ({known}) does not match claim ({uid})"));
    }
    note_use(core, &stored);
    if stored.selectable.labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
        return Err(format!(
            "the token in secret {namespace}/{secret} for service account {namespace}/{account} \
             has been marked invalid. Use tokens from the TokenRequest API or manually created \
             secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to \
             temporarily allow use of this token"
        ));
    }
    user.uid.clone_from(uid);
    Ok((user, if names_secret(&owner, secret) { GENERATED } else { "" }))
}

/// Returns a secret that has this token.
fn find_secret(
    core: &Core,
    (namespace, name): (&str, &str),
    token: &str,
) -> Result<Arc<Stored>, String> {
    let stored = core.find("secrets", namespace, name);
    let stored = stored.filter(|secret| !secret.selectable.terminating);
    let stored = stored.ok_or("Token has been invalidated")?;
    let fields = stored.fields();
    let kept = read_path(&fields, "data.token").and_then(Value::as_str).unwrap_or_default();
    if STANDARD.decode(kept).is_ok_and(|kept| kept != token.as_bytes()) {
        return Err("Token does not match server's copy".to_owned());
    }
    Ok(stored)
}

/// Gives a secret the label with the day on which its token was used, unless it has that of today
/// or, by another server's clock, of tomorrow.
fn note_use(core: &Core, secret: &Stored) {
    let now = core.clock.now();
    let (today, tomorrow) = (day(now), day(now + SignedDuration::from_hours(24)));
    let known = secret.selectable.labels.get(LAST_USED);
    if known.is_some_and(|known| *known == today || *known == tomorrow) {
        return;
    }
    let secrets = core.kinds().find("", "v1", "secrets").expect("the table has the kind");
    let old = secret.packed_fields();
    let mut new = old.clone();
    let labels = metadata_mut(&mut new).entry("labels").or_insert_with(|| json!({}));
    labels[LAST_USED] = json!(today);
    let manager = server_manager(core, Target::Object);
    // After a write in between, the next use gives it the label.
    server_objects::replace(core, &secrets, (secret, &old), new, manager);
}

/// Returns true if an account lists a secret, as a controller did that made one for each account.
fn names_secret(account: &Stored, secret: &str) -> bool {
    let fields = account.fields();
    let secrets = fields.get("secrets").and_then(Value::as_array);
    secrets.into_iter().flatten().any(|listed| listed["name"] == secret)
}

fn find_account(core: &Core, namespace: &str, name: &str) -> Result<Arc<Stored>, String> {
    let stored = core.find("serviceaccounts", namespace, name);
    stored.ok_or_else(|| format!("serviceaccounts {} not found", go_quote(name)))
}

/// Returns true if an object was deleted some time ago, and is there because of its finalizers.
fn is_deleted(stored: &Stored, now: Timestamp) -> bool {
    if !stored.selectable.terminating {
        return false;
    }
    let fields = stored.fields();
    let time = read_path(&fields, "metadata.deletionTimestamp").and_then(Value::as_str);
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.is_none_or(|time| time < now - LEEWAY)
}

/// Returns what the token of a service account says about itself and about its pod or node.
fn extra(claims: &Claims) -> BTreeMap<String, Vec<String>> {
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
        }
    };
    if !claims.id.is_empty() {
        add("credential-id", &format!("JTI={}", claims.id));
    }
    for (kind, object) in [("pod", &claims.holder.pod), ("node", &claims.holder.node)] {
        if let Some(Named { name, uid }) = object {
            add(&format!("{kind}-name"), name);
            add(&format!("{kind}-uid"), uid);
        }
    }
    extra
}

/// Returns the texts as Go prints a list of them with `%q`.
fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", texts.join(" "))
}
