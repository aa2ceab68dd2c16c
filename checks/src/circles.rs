//! Circles of imports between the modules of one folder.
//!
//! An arrow leads from the module of a file to the module that one of its paths names, at the level
//! at which the two differ: a path in `queue/shared/adding.rs` to `queue::timer` is an arrow from
//! `queue/shared` to `queue/timer`. A parent and its children may use each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Source, imports};

/// The modules that each module of one folder uses, with a place for each.
type Level<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// Returns the arrows that are part of a circle, in the crate whose `src` folder is `folder`.
pub fn circles(folder: &str, sources: &[Source]) -> Vec<String> {
    let files = imports::files(folder, sources);
    let modules: BTreeSet<&[&str]> = files.iter().map(|file| &*file.module).collect();
    let mut levels: BTreeMap<&[&str], Level<'_>> = BTreeMap::new();
    for file in &files {
        for path in file.paths() {
            let named = (0..=path.names.len()).rev().map(|length| &path.names[..length]);
            let Some(to) = named.into_iter().find_map(|names| modules.get(names)) else { continue };
            let shared = file.module.iter().zip(*to).take_while(|(from, to)| from == to).count();
            if let (Some(from), Some(to)) = (file.module.get(shared), to.get(shared)) {
                let level = levels.entry(&file.module[..shared]).or_default();
                let place = || format!("{}:{}", file.path, path.line);
                level.entry(from).or_default().entry(to).or_insert_with(place);
            }
        }
    }
    levels.values().flat_map(circles_of).collect()
}

/// Returns the arrows of one level whose end leads back to their start.
fn circles_of(level: &Level<'_>) -> Vec<String> {
    let arrows = level.iter().flat_map(|(from, ends)| ends.iter().map(move |end| (*from, end)));
    arrows
        .filter(|(from, (to, _))| leads(level, to, from))
        .map(|(from, (to, place))| format!("{place}: {from} uses {to}, which leads back to {from}"))
        .collect()
}

/// Returns true if arrows lead from one module to another.
fn leads(level: &Level<'_>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let ends = level.get(module).into_iter().flat_map(BTreeMap::keys);
        open.extend(ends.copied().filter(|end| seen.insert(end)));
    }
    seen.contains(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(name, text): &(&str, &str)| Source {
            path: format!("c/src/{name}.rs"),
            text: (*text).to_owned(),
        };
        circles("c/src", &files.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn arrows_of_a_circle_are_reported_with_their_places() {
        let found = check(&[
            ("a", "use crate::b::B;"),
            ("b", "\nfn f() { super::c::g() }"),
            ("c", "use crate::{a::A, d};"),
            ("d", ""),
        ]);
        let expected = [
            "c/src/a.rs:1: a uses b, which leads back to a",
            "c/src/b.rs:2: b uses c, which leads back to b",
            "c/src/c.rs:1: c uses a, which leads back to c",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn circle_below_a_module_is_found() {
        let files = [
            ("top", ""),
            ("top/a", "use super::b::{self, B};"),
            ("top/b", ""),
            ("top/b/part", "use super::super::a;"),
        ];
        let expected = [
            "c/src/top/a.rs:1: a uses b, which leads back to a",
            "c/src/top/b/part.rs:1: b uses a, which leads back to b",
        ];
        assert_eq!(check(&files), expected);
    }

    #[test]
    fn parent_and_child_may_use_each_other() {
        let files = [("top", "use self::part::Part;"), ("top/part", "use super::Top;")];
        assert!(check(&files).is_empty());
    }

    #[test]
    fn tests_and_arrows_in_one_direction_make_no_circle() {
        let files = [
            ("a", "use crate::b::B;"),
            ("b", "#[cfg(test)]\nmod tests { use crate::a; }\npub(in crate::b) fn f() {}"),
        ];
        assert!(check(&files).is_empty());
    }
}
