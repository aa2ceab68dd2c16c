//! Decides how each mutant is built.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::mutant::Mutant;
use crate::weave::Woven;
use crate::{cargo, tree};

/// Cargo's configuration, which holds the profiles of the copy.
const CONFIG: &str = ".cargo/config.toml";

/// The way in which each mutant is built.
#[derive(Debug)]
pub struct Plan<'a> {
    root: &'a Path,
    /// The files with the mutants that are behind switches.
    woven: BTreeMap<String, Woven>,
    /// The mutants that are behind switches.
    pub switched: Vec<&'a Mutant>,
    /// The mutants that need a build of their own, with the content of their files.
    pub alone: Vec<(&'a Mutant, String)>,
}

// === impl Plan ===

impl<'a> Plan<'a> {
    /// Reads the files of `mutants`, and puts as many as can be behind switches.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or a patch does not apply.
    pub fn new(root: &'a Path, mutants: &'a [Mutant]) -> anyhow::Result<Self> {
        let (switched, alone) = (Vec::new(), Vec::new());
        let mut plan = Self { root, woven: BTreeMap::new(), switched, alone };
        for mutant in mutants {
            let context = || format!("{} does not apply", mutant.name);
            let mutated = tree::mutated(root, mutant).with_context(context)?;
            if plan.weave(mutant, &mutated)? {
                plan.switched.push(mutant);
            } else {
                plan.alone.push((mutant, mutated));
            }
        }
        Ok(plan)
    }

    /// Puts a mutant behind a switch, if it can be.
    fn weave(&mut self, mutant: &Mutant, mutated: &str) -> anyhow::Result<bool> {
        // A procedural macro runs in the compiler.
        let is_macro = mutant.file.starts_with("informer/derive/");
        let is_rust = Path::new(&mutant.file).extension() == Some(OsStr::new("rs"));
        if is_macro || !is_rust {
            return Ok(false);
        }
        if !self.woven.contains_key(&mutant.file) {
            let source = fs::read_to_string(self.root.join(&mutant.file))?;
            let woven = Woven::new(source).with_context(|| mutant.file.clone())?;
            self.woven.insert(mutant.file.clone(), woven);
        }
        let woven = self.woven.get_mut(&mutant.file).context("it was inserted")?;
        Ok(woven.add(&mutant.name, mutated))
    }

    /// Returns the files of the copy that differ from those of the repository.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read.
    pub fn changes(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let config = CONFIG.to_owned();
        let files = self.woven.keys().cloned().chain([config]);
        files.map(|file| Ok((file.clone(), self.text(&file)?))).collect()
    }

    /// Returns the mutants that the compiler's messages are about.
    pub fn blamed(&self, messages: &str) -> BTreeSet<&str> {
        let places = messages.lines().filter_map(place);
        places.filter_map(|(file, line)| self.woven.get(file)?.mutant_at(line)).collect()
    }

    /// Returns a file of the copy.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn text(&self, file: &str) -> anyhow::Result<String> {
        if let Some(woven) = self.woven.get(file) {
            return Ok(woven.text());
        }
        let path = self.root.join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(if file == CONFIG { text + &profiles(self.root)? } else { text })
    }
}

/// Returns the place that a line of the compiler's messages shows.
fn place(line: &str) -> Option<(&str, usize)> {
    let (file, rest) = line.trim_start().strip_prefix("--> ")?.split_once(':')?;
    Some((file, rest.split(':').next()?.parse().ok()?))
}

/// Returns the profiles of the copy's crates: compiled once, and run for seconds, they are not
/// optimized. Dependencies keep the profile of the other steps, which have compiled them.
fn profiles(root: &Path) -> anyhow::Result<String> {
    let mut profiles = String::new();
    for manifest in tree::sources(root)?.iter().filter(|path| path.ends_with("Cargo.toml")) {
        let package = cargo::package(&root.join(manifest));
        if let Some(package) = package.filter(|package| package.starts_with("homeostat")) {
            let settings = "opt-level = 0\ndebug = false";
            writeln!(profiles, "[profile.dev.package.{package}]\n{settings}")?;
        }
    }
    Ok(profiles)
}
