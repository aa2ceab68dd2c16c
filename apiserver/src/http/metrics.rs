//! The document `/metrics`, in the format of Prometheus: what the server has counted, and how many
//! objects are stored.

use std::fmt::Write;
use std::sync::Arc;

use http::Method;

use crate::core::Core;
use crate::kinds::Served;
use crate::reply::{Document, Reply};

/// The media type of the real server's document.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
/// The metrics, under the names of the real server.
const OBJECTS: &str = "apiserver_resource_objects";
const SEATS: &str = "apiserver_flowcontrol_nominal_limit_seats";

/// Answers a request for the document. DELETE resets the counts.
pub(super) fn answer(core: &Core, method: &Method) -> Reply {
    if *method == Method::DELETE {
        core.metrics.reset();
        return Reply::Sniffed("metrics reset\n");
    }
    let mut families = core.metrics.families();
    families.push((OBJECTS, objects(stored(core))));
    families.extend(core.flow_control().map(|control| (SEATS, seats(&control.nominal_seats()))));
    families.sort_unstable_by_key(|(name, _)| *name);
    let body: String = families.into_iter().map(|(_, text)| text).collect();
    let body = body.into();
    Reply::Document(Document { code: 200, media_type: Some(TEXT), body, headers: Vec::new() })
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
        "# HELP {OBJECTS} [ALPHA] Number of stored objects at the time of last check split by \
         kind. In case of a fetching error, the value will be -1.\n# TYPE {OBJECTS} gauge\n"
    );
    for (group, plural, count) in stored {
        writeln!(text, "{OBJECTS}{{group=\"{group}\",resource=\"{plural}\"}} {count}")
            .expect("writing to a String does not fail");
    }
    text
}

fn seats(levels: &[(&str, u64)]) -> String {
    let mut text = format!(
        "# HELP {SEATS} [BETA] Nominal number of execution seats configured for each priority \
         level\n# TYPE {SEATS} gauge\n"
    );
    for (level, seats) in levels {
        writeln!(text, "{SEATS}{{priority_level=\"{level}\"}} {seats}")
            .expect("writing to a String does not fail");
    }
    text
}
