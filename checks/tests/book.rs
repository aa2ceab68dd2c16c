//! The book and the READMEs: each link, include and file name leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use homeostat_checks::{Source, root, sources};

#[test]
fn links_and_includes_resolve() {
    let mut checked = 0;
    let mut broken = Vec::new();
    for page in markdown(&root()) {
        for target in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") || is_rustdoc(&target) {
                continue;
            }
            checked += 1;
            if !resolves(&page.path, &target) {
                broken.push(format!("{}: {target}", page.path));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    assert!(checked >= 50, "only {checked} links were found");
}

#[test]
fn summary_lists_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let pages = markdown(&docs).into_iter().map(|page| page.path.replacen("docs/", "", 1));
    let present: BTreeSet<String> = pages.filter(|page| page != "SUMMARY.md").collect();
    assert_eq!(listed, present);
}

#[test]
fn files_named_in_the_book_exist() {
    let all = sources(&root()).unwrap();
    let exists = |name: &str| {
        let ending = format!("/{name}");
        root().join(name).exists() || all.iter().any(|source| source.path.ends_with(&ending))
    };
    let mut missing = Vec::new();
    for page in all.iter().filter(|page| is_markdown(page) && page.path != "CHANGELOG.md") {
        let names = page.text.split('`').skip(1).step_by(2);
        let gone = names.filter(|name| is_file_name(name) && !exists(name));
        missing.extend(gone.map(|name| format!("{}: {name}", page.path)));
    }
    assert!(missing.is_empty(), "no such file:\n{}", missing.join("\n"));
}

#[test]
fn testing_page_lists_every_variable() {
    let variables = |text: &str| -> BTreeSet<String> {
        let parts = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        parts
            .filter(|part| part.strip_prefix("HOMEOSTAT_").is_some_and(|name| !name.is_empty()))
            .map(str::to_owned)
            .collect()
    };
    let all = sources(&root()).unwrap();
    let code =
        all.iter().filter(|source| !is_markdown(source) && !source.path.starts_with("checks/"));
    let used: BTreeSet<String> = code.flat_map(|source| variables(&source.text)).collect();
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    assert_eq!(variables(&page), used);
}

fn markdown(folder: &Path) -> Vec<Source> {
    let sources = sources(folder).expect("the repository is readable");
    sources.into_iter().filter(is_markdown).collect()
}

fn is_markdown(source: &Source) -> bool {
    Path::new(&source.path).extension().is_some_and(|extension| extension == "md")
}

/// Returns the targets of `[text](target)`, of `[name]: target` and of `{{#include target}}`.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        let includes = line.split("{{#include ").skip(1).filter_map(|rest| rest.split_once("}}"));
        links.extend(includes.map(|(target, _)| target.trim().to_owned()));
        in_fence ^= line.trim_start().starts_with("```");
        if in_fence {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("_");
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        links.extend(inline.map(|(target, _)| target.to_owned()));
        if let Some((_, target)) = prose.split_once("]: ").filter(|_| prose.starts_with('[')) {
            links.push(target.trim().to_owned());
        }
    }
    links
}

/// Returns true for a path of an item: rustdoc resolves it in READMEs that are front pages.
fn is_rustdoc(target: &str) -> bool {
    target.contains("::") || target.starts_with("struct@") || target.starts_with("fn@")
}

fn beside(page: &str) -> PathBuf {
    let path = root().join(page);
    path.parent().expect("a page is in a folder").to_path_buf()
}

fn resolves(page: &str, target: &str) -> bool {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { root().join(page) } else { beside(page).join(path) };
    let is_markdown = file.extension().is_some_and(|extension| extension == "md");
    file.exists()
        && (anchor.is_empty()
            || !is_markdown
            || anchors(&fs::read_to_string(&file).expect("a page is text")).contains(anchor))
}

/// Returns the anchors that GitHub and mdBook give to the headings of `text`.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// Returns true for `folder/file.extension`, without a placeholder.
fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let is_source = extension.is_some_and(|extension| ["rs", "md", "sh"].contains(&extension));
    name.contains('/') && is_source && name.chars().all(is_plain)
}

#[test]
fn link_is_read_from_prose_and_not_from_code() {
    let text = "[a](b.md) and `[c](d.md)`\n```\n[e](f.md)\n```\n[g]: h.md\n{{#include i.rs}}";
    assert_eq!(links(text), ["b.md", "h.md", "i.rs"]);
}

#[test]
fn broken_link_and_broken_anchor_are_found() {
    assert!(resolves("README.md", "docs/architecture.md"));
    assert!(!resolves("README.md", "docs/no-such-page.md"));
    assert!(!resolves("README.md", "docs/architecture.md#no-such-heading"));
    assert!(resolves("docs/architecture.md", "#code-map"));
}

#[test]
fn tutorial_shows_the_files_of_the_repository() {
    let page = fs::read_to_string(root().join("docs/writing-a-controller.md")).unwrap();
    let mut shown = 0;
    for part in page.split("<!-- file: ").skip(1) {
        let (path, rest) = part.split_once(" -->\n```rust,ignore\n").expect("a block follows");
        let (block, _) = rest.split_once("\n```\n").expect("the block ends");
        let file = fs::read_to_string(root().join(path)).unwrap();
        assert!(file.trim_end() == block, "{path} differs from docs/writing-a-controller.md");
        shown += 1;
    }
    assert_eq!(shown, 14, "9 files of the crate, and 5 programs");
}
