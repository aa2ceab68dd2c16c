//! Asks the webhooks that a request concerns, and does what they say.

use homeostat_schema::quote;
use serde_json::Value;

use super::conversation::{Answer, Conversation, Question};
use super::review::{self, Response};
use super::webhook::{Webhook, Webhooks};
use crate::patch::{apply_operations, read_operations};
use crate::policies::{
    Attributes, Codec, Matched, Reinvocation, Source, World, input_of, is_exempt,
};
use crate::status::{Failure, ResourceName, Result};

/// The admission of one request by webhooks.
pub(crate) struct Admission<'a> {
    pub(crate) webhooks: &'a Webhooks,
    pub(crate) world: &'a dyn World,
    pub(crate) codec: &'a dyn Codec,
    pub(crate) conversation: &'a Conversation,
    /// Makes the uid of a review.
    pub(crate) uid: &'a dyn Fn() -> String,
    /// Sends a warning to the client.
    pub(crate) warn: &'a dyn Fn(String),
}

/// The reason why a webhook lets a request not pass.
#[derive(Debug)]
enum Stop {
    /// The call failed: the failure policy decides.
    Call(String),
    /// The request is refused.
    Refused(Failure),
    /// The server has to call the webhook first.
    Open,
}

// === impl Admission ===

impl Admission<'_> {
    /// Asks the mutating webhooks, and changes the object of the request as they say, in a first or
    /// a second pass.
    pub(crate) fn mutate(
        &self,
        request: &mut Attributes<'_>,
        reinvocation: &mut Reinvocation,
    ) -> Result<()> {
        if is_exempt_from_webhooks(request) {
            return Ok(());
        }
        let round = reinvocation.start(&request.object);
        for webhook in &self.webhooks.mutating {
            let Some(matched) = self.matched(webhook, request)? else { continue };
            if round > 0 && !reinvocation.is_due(&webhook.id) {
                continue;
            }
            let result = self
                .call(webhook, request, &matched, (true, round))
                .and_then(|response| self.patch(webhook, request, &matched, &response));
            if matches!(result, Ok(true)) {
                reinvocation.change();
            }
            if webhook.is_reinvoked {
                reinvocation.note_call(webhook.id.clone());
            }
            match result {
                Ok(_) => {}
                Err(stop) => stop.judge(webhook)?,
            }
        }
        reinvocation.finish(&request.object);
        Ok(())
    }

    /// Asks the validating webhooks, all at once.
    pub(crate) fn validate(&self, request: &Attributes<'_>) -> Result<()> {
        if is_exempt_from_webhooks(request) {
            return Ok(());
        }
        let mut concerned = Vec::new();
        for webhook in &self.webhooks.validating {
            if let Some(matched) = self.matched(webhook, request)? {
                concerned.push((webhook, matched));
            }
        }
        let mut is_open = false;
        let mut first = None;
        for (webhook, matched) in concerned {
            let Err(stop) = self.call(webhook, request, &matched, (false, 0)) else { continue };
            is_open |= matches!(stop, Stop::Open);
            if let Err(failure) = stop.judge(webhook) {
                first.get_or_insert(failure);
            }
        }
        match first {
            _ if is_open => Err(Failure::open_question()),
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    /// Returns what the rules of a webhook name, or `None` if the request does not concern it.
    fn matched(&self, webhook: &Webhook, request: &Attributes<'_>) -> Result<Option<Matched>> {
        let Some(resources) = &webhook.resources else { return Ok(None) };
        let no_namespace =
            |name: &str| Failure::not_found(ResourceName::built_in("", "namespaces"), name);
        let matched = resources.matches(request, self.world);
        let matched = matched.map_err(|_| no_namespace(request.namespace))?;
        let (Some(matched), Some(conditions)) = (&matched, &webhook.conditions) else {
            return Ok(matched);
        };
        // Conditions do not see the namespace.
        let input = input_of(request, self.world, matched, Value::Null);
        match conditions.applies(&input) {
            Ok(true) => Ok(Some(matched.clone())),
            Ok(false) => Ok(None),
            Err(error) => {
                let resource =
                    ResourceName::built_in(&request.resource.group, &request.resource.plural);
                Err(Failure::forbidden(resource, request.name, &error))
            }
        }
    }

    /// Asks a webhook, and returns its response if it permits the request.
    fn call(
        &self,
        webhook: &Webhook,
        request: &Attributes<'_>,
        matched: &Matched,
        (is_mutating, round): (bool, u8),
    ) -> std::result::Result<Response, Stop> {
        if request.dry_run && webhook.has_side_effects {
            let name = quote(&webhook.name);
            let message = format!("admission webhook {name} does not support dry run");
            return Err(Stop::Refused(Failure::bad_request(message)));
        }
        let Some(version) = webhook.version else {
            return Err(Stop::Call(
                "could not create admission objects: webhook does not accept known AdmissionReview \
                 versions (v1, v1beta1)"
                    .to_owned(),
            ));
        };
        let content = self.content(request, matched);
        let caller = (if is_mutating { "mutating/" } else { "validating/" }).to_owned();
        let caller = (caller + &webhook.id, round);
        let question = |content| Question {
            caller: caller.clone(),
            content,
            uid: (self.uid)(),
            version,
            address: webhook.address.clone(),
        };
        let caller = (caller.0.as_str(), round);
        let Some((uid, answer)) = self.conversation.answer(caller, content, question) else {
            return Err(Stop::Open);
        };
        let failed = |why: String| Stop::Call(format!("failed to call webhook: {why}"));
        let review = match answer {
            Answer::Body(body) => review::decode(&body, version).map_err(failed)?,
            Answer::Failed(why) => return Err(failed(why)),
        };
        let response = review::verify(&review, (&uid, version), is_mutating)
            .map_err(|why| Stop::Call(format!("received invalid webhook response: {why}")))?;
        response.warnings.iter().cloned().for_each(self.warn);
        if response.allowed {
            return Ok(response);
        }
        Err(Stop::Refused(review::refusal(&webhook.name, &response.status)))
    }

    /// Returns the request of a review in JSON, without its uid.
    fn content(&self, request: &Attributes<'_>, matched: &Matched) -> String {
        let mut content = request.request(&matched.resource, &matched.kind);
        content["object"] = self.shown(request, &request.object, matched);
        content["oldObject"] = self.shown(request, &request.old, matched);
        content.to_string()
    }

    /// Returns an object of the request in the version that a webhook names.
    fn shown(&self, request: &Attributes<'_>, object: &Value, matched: &Matched) -> Value {
        if object.is_null() || matched.kind == request.kind {
            return object.clone();
        }
        self.world.converted(object, matched)
    }

    /// Applies the patch of a response. Returns whether the object changed.
    fn patch(
        &self,
        webhook: &Webhook,
        request: &mut Attributes<'_>,
        matched: &Matched,
        response: &Response,
    ) -> std::result::Result<bool, Stop> {
        if response.patch.is_empty() {
            return Ok(false);
        }
        let operations = read_operations(&response.patch).map_err(|why| {
            Stop::Call(format!("received undecodable patch in webhook response: {why}"))
        })?;
        if operations.is_empty() {
            return Ok(false);
        }
        let internal = |why: &str| Stop::Refused(Failure::internal_error(why));
        if request.object.is_null() {
            return Err(internal(&format!(
                "admission webhook {} attempted to modify the object, which is not supported for \
                 this operation",
                quote(&webhook.name)
            )));
        }
        if response.patch_type != "JSONPatch" {
            let kind = quote(&response.patch_type);
            return Err(Stop::Call(format!("unsupported patch type {kind}")));
        }
        let before = self.shown(request, &request.object, matched);
        let patched = apply_operations(before.clone(), &operations)
            .map_err(|why| internal(&why.to_string()))?;
        let source = Source::Webhook;
        let object = self.codec.decoded(patched, matched, source).map_err(|why| internal(&why))?;
        let is_changed = object != before;
        request.object = if matched.kind == request.kind {
            object
        } else {
            self.codec.restored(object, matched, source).map_err(|why| internal(&why))?
        };
        Ok(is_changed)
    }
}

/// Returns whether no webhook sees a request: one for the configuration of admission itself, or a
/// review of permissions.
fn is_exempt_from_webhooks(request: &Attributes<'_>) -> bool {
    let is_configuration = request.kind.group == "admissionregistration.k8s.io"
        && matches!(
            request.kind.kind.as_str(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"
        );
    is_configuration || is_exempt(request)
}

// === impl Stop ===

impl Stop {
    /// Returns the reply to the request; `Ok` if the failure of the webhook is ignored.
    fn judge(self, webhook: &Webhook) -> Result<()> {
        match self {
            Self::Call(_) if webhook.ignores_failures => Ok(()),
            Self::Call(why) => {
                let name = quote(&webhook.name);
                Err(Failure::internal_error(&format!("failed calling webhook {name}: {why}")))
            }
            Self::Refused(failure) => Err(failure),
            Self::Open => Err(Failure::open_question()),
        }
    }
}
