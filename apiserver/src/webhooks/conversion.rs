//! The conversion of custom objects by the webhook of their definition: what it is sent, and what
//! its replies mean.
//!
//! As in admission, the code that needs a converted object cannot wait for it. It stops, and leaves
//! a question in the [`Conversation`] of its request.

use std::sync::Arc;
use std::time::Duration;

use homeostat_core::go_quote;
use serde_json::{Map, Value, json};

use super::conversation::{Answer, Conversation, Question};
use super::converted;
use super::review::{self, CONVERSION, text};
use super::webhook::{Address, first_known, items};
use crate::fields::Fields;

/// The webhook that converts the objects of a definition.
#[derive(Debug)]
pub(crate) struct ConversionWebhook {
    /// The definition, as the caller of a question.
    caller: String,
    /// The version of the reviews that it is sent; `None` if it reads no known one.
    version: Option<&'static str>,
    address: Arc<Address>,
}

/// The reason why objects are not converted.
#[derive(Debug)]
pub(crate) enum Unconverted {
    /// The server has to call the webhook first.
    Open,
    Failed(String),
}

/// The time for one call, as in the real server's client.
const TIMEOUT: Duration = Duration::from_secs(30);

// === impl ConversionWebhook ===

impl ConversionWebhook {
    /// Reads the `webhook` of a definition's conversion.
    pub(crate) fn read(definition: &str, webhook: &Value) -> Self {
        Self {
            caller: format!("conversion/{definition}"),
            version: first_known(items(webhook, "conversionReviewVersions")),
            address: Arc::new(Address::of_client(&webhook["clientConfig"], TIMEOUT)),
        }
    }

    /// Converts objects, which are all of another version than `to`, in one review.
    ///
    /// # Errors
    ///
    /// Fails if the webhook is still to be called, or if it has not converted all of them.
    pub(crate) fn convert(
        &self,
        conversation: &Conversation,
        objects: &[Fields],
        to: &str,
    ) -> Result<Vec<Fields>, Unconverted> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let Some(version) = self.version else {
            return Err(Unconverted::Failed("no supported conversion review versions".to_owned()));
        };
        let of = format!("{}, Kind={}", text(first, "apiVersion"), text(first, "kind"));
        let failed =
            |why: String| Unconverted::Failed(format!("conversion webhook for {of} failed: {why}"));
        let content = json!({"desiredAPIVersion": to, "objects": objects}).to_string();
        let question = |content| Question {
            caller: (self.caller.clone(), 0),
            review: &CONVERSION,
            content,
            uid: String::new(),
            version,
            address: Arc::clone(&self.address),
        };
        let answer = conversation.answer((&self.caller, 0), content, question);
        let (uid, answered) = answer.ok_or(Unconverted::Open)?;
        let body = match answered.answer {
            Answer::Body(body) => body,
            Answer::Failed { why, .. } => return Err(failed(why)),
        };
        let review = review::decode(&CONVERSION, &body, version).map_err(failed)?;
        let converted = objects_of(&review, (&uid, version)).map_err(failed)?;
        if converted.len() != objects.len() {
            let (got, expected) = (converted.len(), objects.len());
            let counts = format!("returned {got} objects, expected {expected}");
            return Err(Unconverted::Failed(format!("conversion webhook for {of} {counts}")));
        }
        let checked = objects.iter().zip(converted).map(|(original, converted)| {
            converted::check(&of, (original, converted), to).map_err(Unconverted::Failed)
        });
        checked.collect()
    }
}

/// Returns the converted objects in a review.
///
/// # Errors
///
/// Returns the reason why there are none.
fn objects_of<'a>(
    review: &'a Map<String, Value>,
    (uid, version): (&str, &str),
) -> Result<&'a [Value], String> {
    // Version v1beta1 never had to state its type or the uid.
    if version == "v1" && !CONVERSION.is_stated(review, version) {
        return Err(CONVERSION.not_stated(review, version));
    }
    let Some(response) = review.get("response").and_then(Value::as_object) else {
        return Err("no response provided".to_owned());
    };
    let answered = text(response, "uid");
    if version == "v1" && answered != uid {
        return Err(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(answered)));
    }
    let no_result = Map::new();
    let result = response.get("result").and_then(Value::as_object).unwrap_or(&no_result);
    match (text(result, "status"), text(result, "message")) {
        ("Success", _) => {}
        (status, "") => {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        (_, message) => return Err(message.to_owned()),
    }
    let objects = response.get("convertedObjects").and_then(Value::as_array);
    Ok(objects.map(Vec::as_slice).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(review: &Value) -> Result<Vec<Value>, String> {
        objects_of(review.as_object().unwrap(), ("u", "v1")).map(<[Value]>::to_vec)
    }

    #[test]
    fn response_of_another_review_is_refused() {
        let mut review = json!({
            "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "response": {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [1]},
        });
        assert_eq!(answer(&review), Ok(vec![json!(1)]));
        review["response"]["result"] = json!({"status": "Failure"});
        assert_eq!(
            answer(&review).unwrap_err(),
            "response.result.status was 'Failure', not 'Success'"
        );
        review["response"]["result"]["message"] = json!("no");
        assert_eq!(answer(&review).unwrap_err(), "no");
        review["response"]["uid"] = json!("w");
        assert_eq!(answer(&review).unwrap_err(), r#"expected response.uid="u", got "w""#);
        review["response"] = Value::Null;
        assert_eq!(answer(&review).unwrap_err(), "no response provided");
        review["kind"] = json!("Other");
        assert_eq!(
            answer(&review).unwrap_err(),
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             apiextensions.k8s.io/v1, Kind=Other"
        );
    }
}
