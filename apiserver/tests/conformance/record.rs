//! Records the scripts anew from a real kube-apiserver.

use std::fs;

use crate::{
    print::print,
    script::{Answer, Stage},
    suite::{folder, play_real, scripts},
};

/// Plays `all` scripts, or those named, separated by commas, and writes what was answered into their files.
///
/// # Errors
///
/// There is no control plane, or an exchange has no answer.
pub(crate) fn record(wanted: &str) -> Result<(), String> {
    let mut scripts = scripts()?;
    let wanted: Vec<bool> = scripts
        .iter()
        .map(|script| wanted == "all" || wanted.split(',').any(|name| name == script.name))
        .collect();
    // What is recorded from now on has names of its own.
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
                return Err(at(format!("the stage is not set: {answer:?}")));
            }
            answers.push(answer.filter(|_| exchange.stage == Stage::Compared));
        }
        let file = folder().join(format!("{}.txt", script.name));
        fs::write(file, print(script, &answers)).map_err(|error| error.to_string())?;
    }
    Ok(())
}
