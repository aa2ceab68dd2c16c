//! The document `/metrics`: how many objects are stored, in the format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;

use crate::core::Core;
use crate::kinds::Served;
use crate::reply::Document;

/// The media type of the real server's document.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
/// The metric, under the name of the real server.
const OBJECTS: &str = "apiserver_resource_objects";

/// Returns the document.
pub(super) fn document(core: &Core) -> Document {
    let body = objects(stored(core)).into();
    Document { code: 200, media_type: Some(TEXT), body, headers: Vec::new() }
}

/// Returns the group and the plural of each kind that is stored, and the number of its objects.
fn stored(core: &Core) -> Vec<(String, String, usize)> {
    let kinds = core.kinds();
    let rows = kinds.rows().filter_map(|kind| {
        let served = kinds.find(&kind.group, &kind.version, &kind.plural)?;
        Arc::ptr_eq(&served.kind, &served.home).then_some(served)
    });
    let rows: Vec<Served> = rows.collect();
    let count = |served: &Served| core.read(|storage| storage.objects(served.resource).len());
    let row = |served: &Served| {
        (served.home.group.to_string(), served.home.plural.to_string(), count(served))
    };
    let mut stored: Vec<_> = rows.iter().map(row).collect();
    stored.sort_unstable();
    stored
}

fn objects(stored: Vec<(String, String, usize)>) -> String {
    let mut text = format!(
        "# HELP {OBJECTS} [ALPHA] Number of stored objects split by kind.\n# TYPE {OBJECTS} gauge\n"
    );
    for (group, plural, count) in stored {
        writeln!(text, "{OBJECTS}{{group=\"{group}\",resource=\"{plural}\"}} {count}")
            .expect("writing to a String does not fail");
    }
    text
}
