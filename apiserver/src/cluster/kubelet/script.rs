//! What the containers of a pod do: told by the pod itself, in its annotations.

use std::time::Duration;

use super::pod::Pod;

/// Followed by a container's name: the annotation that tells what this container does.
const PREFIX: &str = "exits.homeostat.dev/";

/// What a container does, one start after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    runs: Vec<Run>,
}

/// What becomes of one start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// It runs until its pod is deleted.
    On,
    /// It ends by itself.
    Exits { after: Duration, code: i32 },
}

// === impl Script ===

impl Script {
    /// What a pod says of one of its containers; what is wrong with it, if it cannot be understood.
    pub(super) fn of(pod: &Pod, container: &str) -> Result<Self, String> {
        let annotations = pod.metadata.annotations.as_ref();
        let told = annotations.into_iter().flatten().find_map(|(key, text)| {
            (key.strip_prefix(PREFIX)? == container).then_some(text.as_str())
        });
        let Some(text) = told else { return Ok(Self { runs: Vec::new() }) };
        let runs = text.split(',').map(|run| parse(run.trim()));
        let runs = runs.collect::<Option<Vec<Run>>>().ok_or_else(|| {
            format!(
                "annotation {PREFIX}{container}: {text:?} is not a list of `CODE@TIME` and `run`, as in \"1@2s, run\""
            )
        })?;
        Ok(Self { runs })
    }

    /// What becomes of the start after so many restarts. The last that was told goes for all that follow.
    pub(super) fn run(&self, restarts: i32) -> Run {
        let restarts = usize::try_from(restarts).unwrap_or(0);
        self.runs.get(restarts).or_else(|| self.runs.last()).copied().unwrap_or(Run::On)
    }
}

fn parse(text: &str) -> Option<Run> {
    if text == "run" {
        return Some(Run::On);
    }
    let (code, after) = text.split_once('@')?;
    Some(Run::Exits { after: duration(after)?, code: code.parse::<u8>().ok()?.into() })
}

/// A whole number and its unit: `300ms`, `2s`, `5m`, `1h`.
fn duration(text: &str) -> Option<Duration> {
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

    fn script(text: &str) -> Result<Script, String> {
        let annotations = json!({ "exits.homeostat.dev/c": text, "exits.homeostat.dev/d": "1@0s" });
        let pod = json!({ "metadata": { "annotations": annotations } });
        Script::of(&serde_json::from_value(pod).unwrap(), "c")
    }

    #[test]
    fn each_start_takes_the_next_entry_and_the_last_stays() {
        let fails = Run::Exits { after: Duration::from_millis(1_500), code: 1 };
        let ends = Run::Exits { after: Duration::from_secs(120), code: 0 };
        let told = script("1@1500ms,0@2m , run").unwrap();
        assert_eq!([0, 1, 2, 9].map(|n| told.run(n)), [fails, ends, Run::On, Run::On]);
        assert_eq!(script("1@1500ms").unwrap().run(7), fails);
        let silent = serde_json::from_value(json!({})).unwrap();
        assert_eq!(Script::of(&silent, "c").unwrap().run(0), Run::On);
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
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
            let said = script(text).unwrap_err();
            assert!(said.starts_with("annotation exits.homeostat.dev/c: "), "{said}");
        }
    }
}
