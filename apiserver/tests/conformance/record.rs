//! Records the scripts from a real kube-apiserver and shortens the list of differences.

use std::fs;

use crate::pinned;
use crate::print::print;
use crate::script::{Answer, Script, Stage};
use crate::suite::{directory, is_as_recorded, play_embedded, play_real, scripts};

/// Plays `all` scripts, or the named ones (separated by commas), and writes the responses into
/// their files.
///
/// # Errors
///
/// Returns an error without a control plane, and if an exchange has no response.
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
    for ((script, outcomes), _) in
        scripts.iter().zip(played).zip(&wanted).filter(|(_, wanted)| **wanted)
    {
        let mut answers: Vec<Option<Answer>> = Vec::new();
        for (exchange, outcome) in script.exchanges.iter().zip(outcomes) {
            let at = |why| format!("{} / {}: {why}", script.name, exchange.title);
            let answer = outcome.transpose().map_err(at)?;
            let status = answer.as_ref().map_or(200, |answer| answer.status);
            if exchange.stage != Stage::Compared && status >= 300 {
                return Err(at(format!("setup failed: {answer:?}")));
            }
            answers.push(answer.filter(|_| exchange.stage == Stage::Compared));
        }
        let file = directory().join(format!("{}.txt", script.name));
        fs::write(file, print(script, &answers)).map_err(|error| error.to_string())?;
    }
    Ok(())
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
