//! Asks the webhooks that a request concerns, and does what they say.

use std::time::Duration;

use homeostat_core::go_quote;
use serde_json::Value;

use super::conversation::{Answer, Answered, Conversation, Question};
use super::outcome::{Outcome, RefusedBy, Stop};
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
    /// Sends a warning to the client.
    pub(crate) warn: &'a dyn Fn(String),
}

/// A webhook that a request concerns, and the number of the pass.
#[derive(Clone, Copy)]
struct Turn<'a> {
    webhook: &'a Webhook,
    matched: &'a Matched,
    is_mutating: bool,
    round: u8,
}

/// The code of an error that is none of the webhook's.
const UNAVAILABLE: u16 = 503;

// === impl Turn ===

impl<'a> Turn<'a> {
    /// Returns the outcome of a call, for metrics.
    fn outcome<T>(
        self,
        request: &Attributes<'_>,
        time: Duration,
        result: &'a std::result::Result<T, Stop>,
    ) -> Outcome<'a> {
        let Self { webhook, is_mutating, .. } = self;
        let (operation, stop) = (request.operation.name(), result.as_ref().err());
        Outcome { webhook, is_mutating, operation, time, stop }
    }
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
            let turn = Turn { webhook, matched: &matched, is_mutating: true, round };
            let (time, response) = self.call(turn, request);
            let result =
                response.and_then(|response| self.patch(webhook, request, &matched, &response));
            turn.outcome(request, time, &result).count(self.conversation);
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
            let turn = Turn { webhook, matched: &matched, is_mutating: false, round: 0 };
            let (time, result) = self.call(turn, request);
            turn.outcome(request, time, &result).count(self.conversation);
            let Err(stop) = result else { continue };
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
        let input = input.map_err(|why| Failure::internal_error(&why))?;
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

    /// Asks a webhook, and returns the time of the call and its response if it permits the request.
    fn call(
        &self,
        turn: Turn<'_>,
        request: &Attributes<'_>,
    ) -> (Duration, std::result::Result<Response, Stop>) {
        let mut time = Duration::ZERO;
        let response = self.answer(turn, request).and_then(|(uid, version, answered)| {
            time = answered.time;
            self.read(turn, (&uid, version), answered.answer)
        });
        (time, response)
    }

    /// Returns the answer of a webhook, with the uid and the version of its review.
    fn answer(
        &self,
        Turn { webhook, matched, is_mutating, round }: Turn<'_>,
        request: &Attributes<'_>,
    ) -> std::result::Result<(String, &'static str, Answered), Stop> {
        if request.dry_run && webhook.has_side_effects {
            let name = go_quote(&webhook.name);
            let message = format!("admission webhook {name} does not support dry run");
            let failure = Failure::bad_request(message);
            return Err(Stop::Refused { by: RefusedBy::Server, failure });
        }
        let Some(version) = webhook.version else {
            let why = "could not create admission objects: webhook does not accept known \
                AdmissionReview versions (v1, v1beta1)";
            return Err(Stop::Call { code: 400, why: why.to_owned() });
        };
        let content = self.content(request, matched)?;
        let caller = (if is_mutating { "mutating/" } else { "validating/" }).to_owned();
        let caller = (caller + &webhook.id, round);
        let question = |content| Question {
            caller: caller.clone(),
            review: &review::ADMISSION,
            content,
            uid: String::new(),
            version,
            address: webhook.address.clone(),
        };
        let caller = (caller.0.as_str(), round);
        let answer = self.conversation.answer(caller, content, question);
        answer.map(|(uid, answered)| (uid, version, answered)).ok_or(Stop::Open)
    }

    /// Reads an answer.
    fn read(
        &self,
        turn: Turn<'_>,
        (uid, version): (&str, &'static str),
        answer: Answer,
    ) -> std::result::Result<Response, Stop> {
        let failed =
            |code, why: String| Stop::Call { code, why: format!("failed to call webhook: {why}") };
        let review = match answer {
            Answer::Body(body) => review::decode(&review::ADMISSION, &body, version)
                .map_err(|why| failed(UNAVAILABLE, why))?,
            Answer::Failed { code, why } => return Err(failed(code, why)),
        };
        let response =
            review::verify(&review, (uid, version), turn.is_mutating).map_err(|why| {
                let why = format!("received invalid webhook response: {why}");
                Stop::Call { code: UNAVAILABLE, why }
            })?;
        response.warnings.iter().cloned().for_each(self.warn);
        if response.allowed {
            return Ok(response);
        }
        let failure = review::refusal(&turn.webhook.name, &response.status);
        Err(Stop::Refused { by: RefusedBy::Webhook, failure })
    }

    /// Returns the request of a review in JSON, without its uid.
    fn content(
        &self,
        request: &Attributes<'_>,
        matched: &Matched,
    ) -> std::result::Result<String, Stop> {
        let mut content = request.request(&matched.resource, &matched.kind);
        content["object"] = self.shown(request, &request.object, matched)?;
        content["oldObject"] = self.shown(request, &request.old, matched)?;
        Ok(content.to_string())
    }

    /// Returns an object of the request in the version that a webhook names.
    fn shown(
        &self,
        request: &Attributes<'_>,
        object: &Value,
        matched: &Matched,
    ) -> std::result::Result<Value, Stop> {
        if object.is_null() || matched.kind == request.kind {
            return Ok(object.clone());
        }
        self.world.converted(object, matched).map_err(|why| {
            let failure = Failure::internal_error(&why);
            Stop::Refused { by: RefusedBy::Server, failure }
        })
    }

    /// Applies the patch of a response. Returns true if the object changed.
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
        // The status of a response that allows the request, as if it refused it.
        let code = || review::refusal(&webhook.name, &response.status).code;
        let operations = read_operations(&response.patch).map_err(|why| {
            let why = format!("received undecodable patch in webhook response: {why}");
            Stop::Call { code: code(), why }
        })?;
        if operations.is_empty() {
            return Ok(false);
        }
        let internal = |why: &str| {
            let failure = Failure::internal_error(why);
            Stop::Refused { by: RefusedBy::Server, failure }
        };
        if request.object.is_null() {
            return Err(internal(&format!(
                "admission webhook {} attempted to modify the object, which is not supported for \
                 this operation",
                go_quote(&webhook.name)
            )));
        }
        if response.patch_type != "JSONPatch" {
            let kind = go_quote(&response.patch_type);
            let why = format!("unsupported patch type {kind}");
            return Err(Stop::Call { code: code(), why });
        }
        let before = self.shown(request, &request.object, matched)?;
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

/// Returns true if no webhook sees a request: one for the configuration of admission itself, or a
/// review of permissions.
fn is_exempt_from_webhooks(request: &Attributes<'_>) -> bool {
    let is_configuration = request.kind.group == "admissionregistration.k8s.io"
        && matches!(
            request.kind.kind.as_str(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration"
        );
    is_configuration || is_exempt(request)
}
