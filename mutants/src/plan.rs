//! Decides how each mutant is built.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::cargo;
use crate::mutant::Mutant;
use crate::tree;
use crate::weave::Woven;

/// The way in which each mutant is built.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The files with the mutants that are behind switches.
    pub woven: BTreeMap<String, Woven>,
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
    pub fn new(root: &Path, mutants: &'a [Mutant]) -> anyhow::Result<Self> {
        let mut plan = Self { woven: BTreeMap::new(), switched: Vec::new(), alone: Vec::new() };
        for mutant in mutants {
            let context = || format!("{} does not apply", mutant.name);
            let mutated = tree::mutated(root, mutant).with_context(context)?;
            if plan.weave(root, mutant, &mutated)? {
                plan.switched.push(mutant);
            } else {
                plan.alone.push((mutant, mutated));
            }
        }
        Ok(plan)
    }

    /// Puts a mutant behind a switch, if it can be.
    fn weave(&mut self, root: &Path, mutant: &Mutant, mutated: &str) -> anyhow::Result<bool> {
        // A procedural macro runs in the compiler.
        let is_macro = mutant.file.starts_with("informer/derive/");
        let is_rust = Path::new(&mutant.file).extension() == Some(OsStr::new("rs"));
        if is_macro || !is_rust {
            return Ok(false);
        }
        if !self.woven.contains_key(&mutant.file) {
            let source = fs::read_to_string(root.join(&mutant.file))?;
            let woven = Woven::new(source).with_context(|| mutant.file.clone())?;
            self.woven.insert(mutant.file.clone(), woven);
        }
        let woven = self.woven.get_mut(&mutant.file).context("it was inserted")?;
        Ok(woven.add(&mutant.name, mutated))
    }

    /// Returns the files of the copy that are not those of the repository.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read.
    pub fn changes(&self, root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
        let woven = self.woven.iter().map(|(file, woven)| (file.clone(), woven.text()));
        let mut changes: BTreeMap<String, String> = woven.collect();
        let config = ".cargo/config.toml";
        changes
            .insert(config.to_owned(), fs::read_to_string(root.join(config))? + &profiles(root)?);
        Ok(changes)
    }
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
