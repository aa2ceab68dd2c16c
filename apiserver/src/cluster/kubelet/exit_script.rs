//! Scripted exits of containers, read from the annotations of their pod.

use std::time::Duration;

use super::pod::Pod;

/// The annotation key is this prefix followed by the name of the container.
const PREFIX: &str = "exits.homeostat.dev/";

/// The scripted behaviour of each start of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExitScript {
    runs: Vec<Run>,
}

/// The behaviour of one start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// The container runs until its pod is deleted.
    Forever,
    /// The container exits with `code` after this time.
    Exits { after: Duration, code: i32 },
}

// === impl ExitScript ===

impl ExitScript {
    /// Parses the annotation of `pod` for a container. Without one, every start runs forever.
    ///
    /// # Errors
    ///
    /// Returns a message that names the annotation if it is invalid.
    pub(super) fn parse(pod: &Pod, container: &str) -> Result<Self, String> {
        let annotations = pod.metadata.annotations.as_ref();
        let text = annotations.into_iter().flatten().find_map(|(key, text)| {
            (key.strip_prefix(PREFIX)? == container).then_some(text.as_str())
        });
        let Some(text) = text else { return Ok(Self { runs: Vec::new() }) };
        let runs = text.split(',').map(|run| parse(run.trim()));
        let runs = runs.collect::<Option<Vec<Run>>>().ok_or_else(|| {
            format!(
                "annotation {PREFIX}{container}: {text:?} is not a list of `CODE@TIME` and `run`, \
                 as in \"1@2s, run\""
            )
        })?;
        Ok(Self { runs })
    }

    /// Returns the script of an init container: without an annotation it succeeds at once.
    pub(super) fn of_init(self) -> Self {
        if self.runs.is_empty() {
            return Self { runs: vec![Run::Exits { after: Duration::ZERO, code: 0 }] };
        }
        self
    }

    /// Returns the behaviour after `restarts` restarts. The last entry is used for all later
    /// starts.
    pub(super) fn run(&self, restarts: i32) -> Run {
        let restarts = usize::try_from(restarts).unwrap_or(0);
        self.runs.get(restarts).or_else(|| self.runs.last()).copied().unwrap_or(Run::Forever)
    }
}

fn parse(text: &str) -> Option<Run> {
    if text == "run" {
        return Some(Run::Forever);
    }
    let (code, after) = text.split_once('@')?;
    Some(Run::Exits { after: duration(after)?, code: code.parse::<u8>().ok()?.into() })
}

/// Parses a whole number with a unit: `300ms`, `2s`, `5m`, `1h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number = number.parse::<u32>().ok()?.into();
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number * 60)),
        "h" => Some(Duration::from_secs(number * 3600)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script(text: &str) -> Result<ExitScript, String> {
        let annotations = json!({ "exits.homeostat.dev/c": text, "exits.homeostat.dev/d": "1@0s" });
        let pod = json!({ "metadata": { "annotations": annotations } });
        ExitScript::parse(&serde_json::from_value(pod).unwrap(), "c")
    }

    #[test]
    fn each_start_uses_the_next_entry_and_later_starts_the_last() {
        let fails = Run::Exits { after: Duration::from_millis(1_500), code: 1 };
        let ends = Run::Exits { after: Duration::from_secs(120), code: 0 };
        let parsed = script("1@1500ms,0@2m , run").unwrap();
        assert_eq!([0, 1, 2, 9].map(|n| parsed.run(n)), [fails, ends, Run::Forever, Run::Forever]);
        assert_eq!(script("1@1500ms").unwrap().run(7), fails);
        let silent = serde_json::from_value(json!({})).unwrap();
        assert_eq!(ExitScript::parse(&silent, "c").unwrap().run(0), Run::Forever);
    }

    #[test]
    fn invalid_annotation_is_rejected_with_its_name() {
        for text in [
            "",
            "1",
            "1@",
            "1@2",
            "1@2d",
            "-1@2s",
            "256@2s",
            "1@2s,",
            "1@9999999999h",
            "stop",
            "1@é",
        ] {
            let message = script(text).unwrap_err();
            assert!(message.starts_with("annotation exits.homeostat.dev/c: "), "{message}");
        }
    }
}
