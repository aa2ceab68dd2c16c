//! The format of a kubectl script.

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step<'a> {
    pub(crate) command: &'a str,
    /// The standard input.
    pub(crate) input: String,
    /// True if the output depends on an actor. It is compared when it is stable.
    pub(crate) eventually: bool,
    /// True if the order of the lines is not compared.
    pub(crate) sorted: bool,
    /// The output of both servers. Empty if the real server decides it.
    pub(crate) expected: String,
}

/// Parses a script: commands, standard input after `> `, expected output after `< `, comments after
/// `#`.
///
/// `~ ` before a command sets `eventually`, `% ` sets `sorted`.
pub(crate) fn parse(script: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(input) = line.strip_prefix('>') {
            push_line(&mut last(&mut steps).input, input);
            continue;
        }
        if let Some(output) = line.strip_prefix('<') {
            push_line(&mut last(&mut steps).expected, output);
            continue;
        }
        let eventually = line.strip_prefix("~ ");
        let sorted = line.strip_prefix("% ");
        steps.push(Step {
            command: eventually.or(sorted).unwrap_or(line),
            input: String::new(),
            eventually: eventually.is_some(),
            sorted: sorted.is_some(),
            expected: String::new(),
        });
    }
    steps
}

fn last<'a, 'b>(steps: &'a mut [Step<'b>]) -> &'a mut Step<'b> {
    steps.last_mut().expect("a script begins with a command")
}

/// Adds a line without the space after its mark.
fn push_line(text: &mut String, line: &str) {
    text.push_str(line.strip_prefix(' ').unwrap_or(line));
    text.push('\n');
}
