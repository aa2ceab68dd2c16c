//! The unified diff that the real server puts into messages: that of Python's `difflib`, which
//! Go's library follows.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use homeostat_schema::InternalValue;
use serde_json::Value;

/// The unchanged lines before and after a change.
const CONTEXT: usize = 3;
/// From this number of lines on, lines that are frequent start no block.
const MANY: usize = 200;

/// Lines that are equal on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    old: usize,
    new: usize,
    size: usize,
}

/// A change: the lines of the old text, and those of the new one in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// Searches for equal lines.
struct Matcher<'a> {
    old: &'a [&'a str],
    /// The places of each line in the new text, without the frequent lines.
    places: HashMap<&'a str, Vec<usize>>,
    new: &'a [&'a str],
}

/// Returns the difference of two values of version v1, as the server's own version shows them.
pub(crate) fn diff(type_name: &str, old: &Value, new: &Value) -> String {
    let lines = |value: &Value| {
        InternalValue::of(type_name, value).map(|shown| shown.indented()).unwrap_or_default()
    };
    unified(&lines(old), &lines(new))
}

/// Returns the changed lines with their surroundings; empty for equal texts.
fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut text = String::new();
    for group in groups(changes(&old, &new)) {
        write_group(&mut text, &group, &old, &new);
    }
    text
}

fn write_group(text: &mut String, group: &[Change], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let before = |range: &Range<usize>| range.start.saturating_sub(CONTEXT);
    let after = |range: &Range<usize>, len: usize| (range.end + CONTEXT).min(len);
    let (from, to) = (before(&first.old), after(&last.old, old.len()));
    let (new_from, new_to) = (before(&first.new), after(&last.new, new.len()));
    let (old_range, new_range) = (range_text(from..to), range_text(new_from..new_to));
    writeln!(text, "@@ -{old_range} +{new_range} @@").expect("writing to a String does not fail");
    let mut write = |mark: char, lines: &[&str]| {
        for line in lines {
            text.push(mark);
            text.push_str(line);
            text.push('\n');
        }
    };
    let mut at = from;
    for change in group {
        write(' ', &old[at..change.old.start]);
        write('-', &old[change.old.clone()]);
        write('+', &new[change.new.clone()]);
        at = change.old.end;
    }
    write(' ', &old[at..to]);
}

fn range_text(range: Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        len => format!("{},{len}", range.start + 1),
    }
}

/// Groups changes that share the lines around them.
fn groups(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let mut groups: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        match groups.last_mut() {
            Some(group)
                if group
                    .last()
                    .is_some_and(|last| change.old.start - last.old.end <= 2 * CONTEXT) =>
            {
                group.push(change);
            }
            _ => groups.push(vec![change]),
        }
    }
    groups
}

fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let matcher = Matcher::new(old, new);
    let mut blocks = Vec::new();
    matcher.find_blocks(0..old.len(), 0..new.len(), &mut blocks);
    blocks.push(Block { old: old.len(), new: new.len(), size: 0 });
    let (mut old_at, mut new_at) = (0, 0);
    let mut changes = Vec::new();
    for block in blocks {
        if old_at < block.old || new_at < block.new {
            changes.push(Change { old: old_at..block.old, new: new_at..block.new });
        }
        (old_at, new_at) = (block.old + block.size, block.new + block.size);
    }
    changes
}

// === impl Block ===

impl Block {
    /// Returns the larger block; of equal ones the first.
    fn larger(self, other: Self) -> Self {
        if other.size > self.size { other } else { self }
    }
}

// === impl Matcher ===

impl<'a> Matcher<'a> {
    fn new(old: &'a [&'a str], new: &'a [&'a str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(at);
        }
        if new.len() >= MANY {
            places.retain(|_, at| at.len() <= new.len() / 100 + 1);
        }
        Self { old, places, new }
    }

    /// Finds the longest equal block, then those before and after it.
    fn find_blocks(&self, old: Range<usize>, new: Range<usize>, blocks: &mut Vec<Block>) {
        let found = self.longest(old.clone(), new.clone());
        if found.size == 0 {
            return;
        }
        if old.start < found.old && new.start < found.new {
            self.find_blocks(old.start..found.old, new.start..found.new, blocks);
        }
        blocks.push(found);
        let (old_end, new_end) = (found.old + found.size, found.new + found.size);
        if old_end < old.end && new_end < new.end {
            self.find_blocks(old_end..old.end, new_end..new.end, blocks);
        }
    }

    /// Returns the longest block of equal lines; among equally long ones the first.
    fn longest(&self, old: Range<usize>, new: Range<usize>) -> Block {
        let mut best = Block { old: old.start, new: new.start, size: 0 };
        // The length of the block that ends at a line of the new text and at the last old one.
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for at in old.clone() {
            let mut next = HashMap::new();
            let places = self.places.get(self.old[at]).map_or(&[][..], Vec::as_slice);
            for &place in places.iter().filter(|place| new.contains(place)) {
                let before = place.checked_sub(1).and_then(|before| lengths.get(&before));
                let size = before.copied().unwrap_or(0) + 1;
                next.insert(place, size);
                let found = Block { old: at + 1 - size, new: place + 1 - size, size };
                best = best.larger(found);
            }
            lengths = next;
        }
        // Frequent lines join a block, though they start none.
        while best.old > old.start
            && best.new > new.start
            && self.old[best.old - 1] == self.new[best.new - 1]
        {
            best = Block { old: best.old - 1, new: best.new - 1, size: best.size + 1 };
        }
        while best.old + best.size < old.end
            && best.new + best.size < new.end
            && self.old[best.old + best.size] == self.new[best.new + best.size]
        {
            best.size += 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_shown_with_three_lines_around_it() {
        let old = "a\nb\nc\nd\ne\nf\ng";
        assert_eq!(unified(old, old), "");
        let shown = unified(old, "a\nb\nc\nd\nX\nY\nf\ng");
        assert_eq!(shown, "@@ -2,6 +2,7 @@\n b\n c\n d\n-e\n+X\n+Y\n f\n g\n");
        assert_eq!(unified("a\nb", "a\nb\nc"), "@@ -1,2 +1,3 @@\n a\n b\n+c\n");
    }

    #[test]
    fn distant_changes_are_groups_of_their_own() {
        let old: Vec<String> = (0..20).map(|at| at.to_string()).collect();
        let mut new = old.clone();
        "x".clone_into(&mut new[2]);
        "y".clone_into(&mut new[9]);
        "z".clone_into(&mut new[10]);
        assert_eq!(unified(&old.join("\n"), &new.join("\n")).matches("@@ -").count(), 1);
        "9".clone_into(&mut new[9]);
        assert_eq!(unified(&old.join("\n"), &new.join("\n")).matches("@@ -").count(), 2);
    }

    #[test]
    fn frequent_lines_of_long_texts_start_no_block() {
        let line =
            |at: usize| if at.is_multiple_of(2) { "same".to_owned() } else { at.to_string() };
        let old: Vec<String> = (0..400).map(line).collect();
        let mut new = old.clone();
        "x".clone_into(&mut new[201]);
        "y".clone_into(&mut new[203]);
        let shown = unified(&old.join("\n"), &new.join("\n"));
        let changed = "-201\n-same\n-203\n+x\n+same\n+y\n";
        let expected =
            format!("@@ -199,9 +199,9 @@\n same\n 199\n same\n{changed} same\n 205\n same\n");
        assert_eq!(shown, expected);
    }
}
