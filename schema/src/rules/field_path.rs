//! Reads the `fieldPath` of a rule.

use serde_json::Value;

use crate::open_api::members;

/// Returns the path as messages show it; `None` if the schema has no such field.
pub(super) fn normalized(path: &str, schema: &Value) -> Option<String> {
    let mut rest = path;
    let mut schema = schema;
    let mut written = String::new();
    while !rest.is_empty() {
        let (name, after) = step(rest)?;
        rest = after;
        if let Some(fields) = members(schema, "properties") {
            schema = fields.get(&name)?;
        } else {
            schema = schema.get("additionalProperties").filter(|values| values.is_object())?;
            written.extend(["[", &name, "]"]);
            continue;
        }
        if !written.is_empty() {
            written.push('.');
        }
        written.push_str(&name);
    }
    Some(written).filter(|written| !written.is_empty())
}

/// Reads `.name` or `['name']`; returns the name and the rest.
fn step(path: &str) -> Option<(String, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        return (end > 0).then(|| (rest[..end].to_owned(), &rest[end..]));
    }
    let mut rest = path.strip_prefix("['")?.chars();
    let mut name = String::new();
    loop {
        match rest.next()? {
            '\'' => return rest.as_str().strip_prefix(']').map(|rest| (name, rest)),
            '\\' => name.push(match rest.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                c @ ('\'' | '\\') => c,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::normalized;

    #[test]
    fn paths_follow_the_schema() {
        let text = json!({"type": "string"});
        let schema = json!({"properties": {
            "a": {"properties": {"b.c": text}},
            "m": {"additionalProperties": {"properties": {"x": text}}},
        }});
        for (path, expected) in [
            (".a", Some("a")),
            (".a['b.c']", Some("a.b.c")),
            (".m['key'].x", Some("m[key].x")),
            (".b", None),
            ("a", None),
            (".a.", None),
            (".a['b.c'", None),
        ] {
            assert_eq!(normalized(path, &schema).as_deref(), expected, "{path}");
        }
    }
}
