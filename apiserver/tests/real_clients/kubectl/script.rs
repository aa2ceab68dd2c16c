//! What somebody types.

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    pub(crate) command: &'a str,
    /// What it reads.
    pub(crate) input: String,
    /// Whether it shows what a neighbour does, in its own time.
    pub(crate) eventually: bool,
    /// Whether the order of its lines means nothing.
    pub(crate) sorted: bool,
}

/// Takes a script apart: commands, input behind `> `, comments behind `#`.
///
/// `~ ` before a command: it shows what a neighbour does. `% `: the order of its lines means nothing.
pub(crate) fn parse(script: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(input) = line.strip_prefix('>') {
            let step = steps.last_mut().expect("a script begins with a command");
            step.input.push_str(input.strip_prefix(' ').unwrap_or(input));
            step.input.push('\n');
            continue;
        }
        let eventually = line.strip_prefix("~ ");
        let sorted = line.strip_prefix("% ");
        steps.push(Step {
            command: eventually.or(sorted).unwrap_or(line),
            input: String::new(),
            eventually: eventually.is_some(),
            sorted: sorted.is_some(),
        });
    }
    steps
}
