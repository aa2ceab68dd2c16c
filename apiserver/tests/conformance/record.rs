//! Records the scripts from a real kube-apiserver and shortens the list of differences.

use std::fs;

use crate::pinned;
use crate::play::Outcome;
use crate::print::print;
use crate::script::{Answer, Script, Stage};
use crate::suite::{directory, is_as_recorded, play_embedded, play_real, scripts};

/// Plays `all` scripts, or the named ones (separated by commas), and writes the responses into
/// their files.
///
/// # Errors
///
/// Returns an error without a control plane, and all exchanges that have no response: the files of
/// their scripts stay as they are.
pub(crate) fn record(wanted: &str) -> Result<(), String> {
    if wanted == "pinned" {
        return pinned::record();
    }
    let mut scripts = scripts()?;
    if wanted == "differences" {
        return remove_resolved_differences(&scripts);
    }
    let wanted: Vec<bool> = scripts
        .iter()
        .map(|script| wanted == "all" || wanted.split(',').any(|name| name == script.name))
        .collect();
    // New recordings start with new names.
    for script in scripts.iter_mut().zip(&wanted).filter(|(_, wanted)| **wanted) {
        script.0.exchanges.iter_mut().for_each(|exchange| exchange.answer = None);
    }
    let played = play_real(&scripts, &wanted)?;
    let mut failures = Vec::new();
    for ((script, outcomes), _) in
        scripts.iter().zip(played).zip(&wanted).filter(|(_, wanted)| **wanted)
    {
        match answers(script, outcomes) {
            Ok(answers) => {
                let file = directory().join(format!("{}.txt", script.name));
                fs::write(file, print(script, &answers)).map_err(|error| error.to_string())?;
            }
            Err(failed) => failures.extend(failed),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Returns the responses of a script, one per exchange that is compared.
///
/// # Errors
///
/// Returns each exchange without a response, and each failed setup.
fn answers(
    script: &Script,
    outcomes: Vec<Option<Outcome>>,
) -> Result<Vec<Option<Answer>>, Vec<String>> {
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for (exchange, outcome) in script.exchanges.iter().zip(outcomes) {
        let at = |why| format!("{} / {}: {why}", script.name, exchange.title);
        let is_compared = exchange.stage == Stage::Compared;
        match outcome {
            Some(Err(why)) => failures.push(at(why)),
            Some(Ok(answer)) if !is_compared && answer.status >= 300 => {
                failures.push(at(format!("setup failed: {answer:?}")));
            }
            Some(Ok(answer)) => answers.push(is_compared.then_some(answer)),
            None => answers.push(None),
        }
    }
    if failures.is_empty() { Ok(answers) } else { Err(failures) }
}

/// Removes the exchanges from `differences.txt` to which the embedded server responds as recorded.
fn remove_resolved_differences(scripts: &[Script]) -> Result<(), String> {
    let mut right = Vec::new();
    for script in scripts {
        for (exchange, outcome) in script.exchanges.iter().zip(play_embedded(script)) {
            if is_as_recorded(exchange, outcome.as_ref()) {
                right.push(format!("{} / {}", script.name, exchange.title));
            }
        }
    }
    let file = directory().join("differences.txt");
    let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let lines = text.lines().filter(|line| !right.iter().any(|right| right == line));
    let text: Vec<_> = lines.collect();
    fs::write(file, text.join("\n") + "\n").map_err(|error| error.to_string())
}
