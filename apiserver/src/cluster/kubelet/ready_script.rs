//! Scripted readiness of containers, read from the annotations of their pod.

use std::time::Duration;

use super::exit_script::duration;
use super::pod::Pod;

/// The annotation key is this prefix followed by the name of the container.
const PREFIX: &str = "ready.homeostat.dev/";

/// The readiness of a container after its start, as its probe would report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadyScript {
    /// Time since the start, and the readiness from then on; in the order of their times.
    changes: Vec<(Duration, bool)>,
}

// === impl ReadyScript ===

impl ReadyScript {
    /// Parses the annotation of `pod` for a container, if there is one.
    ///
    /// # Errors
    ///
    /// Returns a message that names the annotation if it is invalid.
    pub(super) fn parse(pod: &Pod, container: &str) -> Result<Option<Self>, String> {
        let annotations = pod.metadata.annotations.as_ref();
        let text = annotations.into_iter().flatten().find_map(|(key, text)| {
            (key.strip_prefix(PREFIX)? == container).then_some(text.as_str())
        });
        let Some(text) = text else { return Ok(None) };
        let changes = text.split(',').map(|change| parse(change.trim()));
        let changes = changes.collect::<Option<Vec<_>>>();
        let changes = changes.filter(|changes| changes.is_sorted_by_key(|(after, _)| *after));
        let changes = changes.ok_or_else(|| {
            format!(
                "annotation {PREFIX}{container}: {text:?} is not a list of `yes@TIME` and \
                 `no@TIME` in order, as in \"yes@5s, no@1m\""
            )
        })?;
        Ok(Some(Self { changes }))
    }

    /// Returns the readiness of a container this time after its start.
    pub(super) fn after(&self, elapsed: Duration) -> bool {
        let past = self.changes.iter().take_while(|(after, _)| *after <= elapsed);
        past.last().is_some_and(|(_, is_ready)| *is_ready)
    }

    /// Returns the next change after this time since the start.
    pub(super) fn next(&self, elapsed: Duration) -> Option<(Duration, bool)> {
        self.changes.iter().find(|(after, _)| *after > elapsed).copied()
    }
}

fn parse(text: &str) -> Option<(Duration, bool)> {
    let (answer, after) = text.split_once('@')?;
    let is_ready = match answer {
        "yes" => true,
        "no" => false,
        _ => return None,
    };
    Some((duration(after)?, is_ready))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(text: &str) -> Result<Option<ReadyScript>, String> {
        let annotations = json!({ "ready.homeostat.dev/c": text });
        let pod = json!({ "metadata": { "annotations": annotations } });
        ReadyScript::parse(&serde_json::from_value(pod).unwrap(), "c")
    }

    #[test]
    fn readiness_follows_the_list() {
        let script = script("yes@5s, no@1m").unwrap().unwrap();
        let seconds = Duration::from_secs;
        let states = [0, 4, 5, 59, 60, 3600].map(|at| script.after(seconds(at)));
        assert_eq!(states, [false, false, true, true, false, false]);
        assert_eq!(script.next(seconds(0)), Some((seconds(5), true)));
        assert_eq!(script.next(seconds(5)), Some((seconds(60), false)));
        assert_eq!(script.next(seconds(60)), None);
    }

    #[test]
    fn invalid_annotation_is_rejected_with_its_name() {
        for text in ["", "yes", "yes@", "maybe@1s", "yes@5s,", "yes@5s, no@1s"] {
            let message = script(text).unwrap_err();
            assert!(message.starts_with("annotation ready.homeostat.dev/c: "), "{message}");
        }
        assert_eq!(ReadyScript::parse(&serde_json::from_value(json!({})).unwrap(), "c"), Ok(None));
    }
}
