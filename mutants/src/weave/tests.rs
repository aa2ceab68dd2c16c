use super::Woven;

const SOURCE: &str = r#"//! Module.
const LIMIT: u32 = 3;
struct Counter(u32);
impl Counter {
    fn add(&mut self) -> u32 {
        self.0 += 1; // "}"
        self.0
    }
    const fn zero() -> Self { Self(0) }
    fn all(&self) -> impl Iterator<Item = u32> { 0..self.0 }
}
trait Named {
    fn name(&self) -> &str;
    fn twice(&self) -> String { self.name().repeat(2) }
}
fn outer() -> u32 {
    fn inner() -> u32 { 1 }
    inner()
}
"#;

fn woven(changes: &[(&str, &str, &str)]) -> (Woven, Vec<bool>) {
    let mut woven = Woven::new(SOURCE.to_owned()).unwrap();
    let added = changes
        .iter()
        .map(|(name, from, to)| {
            assert!(SOURCE.contains(from), "{from}");
            woven.add(name, &SOURCE.replace(from, to))
        })
        .collect();
    (woven, added)
}

#[test]
fn file_without_mutants_is_unchanged() {
    assert_eq!(woven(&[]).0.text(), SOURCE);
}

#[test]
fn each_mutant_is_a_branch_before_the_original_body() {
    let (woven, added) = woven(&[("one", "+= 1", "+= 2"), ("two", "self.0\n", "0\n")]);
    assert_eq!(added, [true, true]);
    let text = woven.text();
    syn::parse_file(&text).unwrap();
    let one = text.find("name == \"one\"").unwrap();
    let two = text.find("name == \"two\"").unwrap();
    let body = text.find("+= 2").unwrap();
    assert!(one < body && body < two, "{text}");
    assert_eq!(text.matches("+= 1; // \"}\"\n").count(), 2, "that of two and the original\n{text}");
    assert!(text.contains("self.0\n    } }\n    const fn zero"), "the original is last\n{text}");
}

#[test]
fn default_methods_and_nested_functions_are_switched() {
    let (woven, added) = woven(&[("thrice", "repeat(2)", "repeat(3)"), ("in", "{ 1 }", "{ 2 }")]);
    assert_eq!(added, [true, true]);
    let text = woven.text();
    syn::parse_file(&text).unwrap();
    assert_eq!(text.matches("fn inner()").count(), 2, "the outer body as a whole\n{text}");
}

#[test]
fn mutant_of_two_functions_has_a_switch_in_each() {
    let mutated = SOURCE.replace("+= 1", "+= 2").replace("repeat(2)", "repeat(3)");
    let mut woven = Woven::new(SOURCE.to_owned()).unwrap();
    assert!(woven.add("both", &mutated));
    assert_eq!(woven.text().matches("name == \"both\"").count(), 2);
}

#[test]
fn mutant_of_more_than_a_body_needs_its_own_build() {
    let changes = [
        ("constant", "LIMIT: u32 = 3", "LIMIT: u32 = 4"),
        ("constant_function", "Self(0)", "Self(1)"),
        ("own_type", "0..self.0", "1..self.0"),
        ("signature", "fn outer() -> u32", "fn outer() -> u64"),
        ("new_function", "fn outer()", "fn more() {}\nfn outer()"),
        ("end", "inner()\n}\n", "inner()\n}\nconst END: u32 = 1;\n"),
        ("nothing", "LIMIT", "LIMIT"),
        ("no_rust", "struct", "struc"),
    ];
    let (woven, added) = woven(&changes);
    assert_eq!(added, [false; 8]);
    assert_eq!(woven.text(), SOURCE);
}
