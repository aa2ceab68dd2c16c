//! Puts many mutants of one file into its source, each behind a switch.
//!
//! A function whose body a mutant changes gets both bodies. The environment variable [`SWITCH`]
//! chooses between them when the program runs, so that one build serves all mutants.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use syn::visit::Visit;
use syn::{Block, ImplItemFn, ItemFn, Signature, TraitItemFn, TypeImplTrait};

#[cfg(test)]
mod tests;

/// The environment variable that holds the name of the mutant that is active.
pub const SWITCH: &str = "HOMEOSTAT_MUTANT";

/// A source file and the mutants that are behind switches in it.
#[derive(Debug)]
pub struct Woven {
    source: String,
    functions: Vec<Function>,
    /// The mutated bodies by the index of their function.
    bodies: BTreeMap<usize, Vec<Mutated>>,
}

#[derive(Debug)]
struct Mutated {
    name: String,
    body: String,
}

/// A function that is not part of another one.
#[derive(Debug)]
struct Function {
    /// Bytes of its body, with the braces.
    body: Range<usize>,
    /// True if a body may be an `if` that has both bodies as its branches.
    is_switchable: bool,
}

// === impl Woven ===

impl Woven {
    /// Returns `source` without any mutant.
    ///
    /// # Errors
    ///
    /// Fails if `source` is no Rust.
    pub fn new(source: String) -> syn::Result<Self> {
        let functions = functions(&source)?;
        Ok(Self { source, functions, bodies: BTreeMap::new() })
    }

    /// Adds a mutant, whose whole file is `mutated`; returns false, and adds nothing, if it needs a
    /// build of its own.
    ///
    /// That is a mutant that changes more than bodies, or a body that runs at compile time (`const
    /// fn`) or has a type of its own (`-> impl Trait`).
    pub fn add(&mut self, name: &str, mutated: &str) -> bool {
        let Some(changed) = self.changed_functions(mutated) else { return false };
        for (index, body) in changed {
            let body = mutated[body].to_owned();
            self.bodies.entry(index).or_default().push(Mutated { name: name.to_owned(), body });
        }
        true
    }

    /// Returns the functions that differ in `mutated`, each with the bytes of its body there, or
    /// `None` if something else differs, too.
    fn changed_functions(&self, mutated: &str) -> Option<Vec<(usize, Range<usize>)>> {
        let theirs = functions(mutated).ok()?;
        if between(&self.source, &self.functions) != between(mutated, &theirs) {
            return None;
        }
        let functions = self.functions.iter().zip(theirs).enumerate();
        let changed: Vec<_> = functions
            .filter(|(_, (ours, theirs))| {
                self.source[ours.body.clone()] != mutated[theirs.body.clone()]
            })
            .collect();
        let are_switchable = changed.iter().all(|(_, (ours, _))| ours.is_switchable);
        (are_switchable && !changed.is_empty())
            .then(|| changed.into_iter().map(|(index, (_, theirs))| (index, theirs.body)).collect())
    }

    /// Returns the mutant whose body is at a line of [`text`](Self::text). The first line is 1.
    pub fn mutant_at(&self, line: usize) -> Option<&str> {
        let text = self.text();
        let lines = text.lines().take(line).collect::<Vec<_>>();
        let names = self.bodies.values().flatten().map(|mutated| mutated.name.as_str());
        names
            .filter_map(|name| {
                Some((lines.iter().rposition(|line| line.contains(&test(name)))?, name))
            })
            .max()
            .map(|(_, name)| name)
    }

    /// Returns the source with all mutants.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut at = 0;
        for (index, function) in self.functions.iter().enumerate() {
            text.push_str(&self.source[at..function.body.start]);
            at = function.body.end;
            let body = &self.source[function.body.clone()];
            match self.bodies.get(&index) {
                Some(mutated) => text.push_str(&switched(body, mutated)),
                None => text.push_str(body),
            }
        }
        text + &self.source[at..]
    }
}

/// Returns the text before, between and after the bodies of `functions`.
fn between<'a>(source: &'a str, functions: &[Function]) -> Vec<&'a str> {
    let starts = functions.iter().map(|function| function.body.start).chain([source.len()]);
    let ends = [0].into_iter().chain(functions.iter().map(|function| function.body.end));
    ends.zip(starts).map(|(end, start)| &source[end..start]).collect()
}

/// Returns a body that runs the active one of `mutated`, or `original`.
fn switched(original: &str, mutated: &[Mutated]) -> String {
    let mut text = String::from("{ ");
    for Mutated { name, body } in mutated {
        // The variable is read once for each switch: a body may run a million times in a test.
        write!(
            text,
            "if {{ static ON: ::std::sync::LazyLock<bool> = ::std::sync::LazyLock::new(|| \
             ::std::env::var_os({SWITCH:?}).is_some_and(|name| {})); *ON }} {body} \
             else ",
            test(name)
        )
        .expect("a string takes every text");
    }
    text + original + " }"
}

/// Returns the expression that is true if the mutant is active.
fn test(name: &str) -> String {
    format!("name == {name:?}")
}

// === impl Function ===

impl Function {
    fn new(signature: &Signature, body: &Block) -> Self {
        let braces = body.brace_token.span;
        let mut returns = OwnType(false);
        returns.visit_return_type(&signature.output);
        Self {
            body: braces.open().byte_range().start..braces.close().byte_range().end,
            is_switchable: signature.constness.is_none() && !returns.0,
        }
    }
}

/// True once an `impl Trait` has been visited.
struct OwnType(bool);

// === impl OwnType ===

impl<'ast> Visit<'ast> for OwnType {
    fn visit_type_impl_trait(&mut self, _: &'ast TypeImplTrait) {
        self.0 = true;
    }
}

/// Returns the outermost functions of `source`, in its order.
fn functions(source: &str) -> syn::Result<Vec<Function>> {
    let file = syn::parse_file(source)?;
    let mut outermost = Outermost(Vec::new());
    outermost.visit_file(&file);
    Ok(outermost.0)
}

struct Outermost(Vec<Function>);

// === impl Outermost ===

/// A function's body is not visited, so that functions inside it are part of it.
impl<'ast> Visit<'ast> for Outermost {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.0.push(Function::new(&function.sig, &function.block));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.0.push(Function::new(&function.sig, &function.block));
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(body) = &function.default {
            self.0.push(Function::new(&function.sig, body));
        }
    }
}
