//! Strings within JSON: truncating them for previews, and visiting them for search.

use serde_json::Value;

/// Fields with identifiers, which are neither truncated nor searched.
const IDENTIFIER_FIELDS: [&str; 14] = [
    "id",
    "type",
    "blob",
    "timestamp",
    "kind",
    "status",
    "origin",
    "blockId",
    "parentToolCallId",
    "mimeType",
    "scope",
    "requestId",
    "toolCallId",
    "optionId",
];

/// Truncates every string to `max` characters; appends the paths and lengths of the truncated ones
/// to `cut`.
pub fn clip(value: &mut Value, max: usize, cut: &mut Vec<(String, usize)>) {
    walk(value, &mut String::new(), &mut |path, text| {
        // Compare bytes first: most texts are short, and counting characters is slow.
        if text.len() > max
            && !is_identifier(path)
            && let Some((at, _)) = text.char_indices().nth(max)
        {
            cut.push((path.to_owned(), text.chars().count()));
            text.truncate(at);
        }
    });
}

/// Passes every non-empty text and its path to `visit`.
pub(crate) fn visit_texts(mut value: Value, mut visit: impl FnMut(&str, &str)) {
    walk(&mut value, &mut String::new(), &mut |path, text| {
        if !is_identifier(path) && !text.is_empty() {
            visit(path, text);
        }
    });
}

/// Whether a field is an identifier: it is useful only as a whole.
fn is_identifier(path: &str) -> bool {
    IDENTIFIER_FIELDS.contains(&path.rsplit('.').next().unwrap_or_default())
}

fn walk(value: &mut Value, path: &mut String, visit: &mut dyn FnMut(&str, &mut String)) {
    let mut inside = |name: &str, value: &mut Value, path: &mut String| {
        let length = path.len();
        if length > 0 {
            path.push('.');
        }
        path.push_str(name);
        walk(value, path, visit);
        path.truncate(length);
    };
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(list) => {
            for (at, value) in list.iter_mut().enumerate() {
                inside(&at.to_string(), value, path);
            }
        }
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                inside(&name.clone(), value, path);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_at_characters() {
        let mut value = serde_json::json!({"a": {"b": ["short", "日本語日本語"]}, "c": 1});
        let mut cut = Vec::new();
        clip(&mut value, 5, &mut cut);
        assert_eq!(value["a"]["b"], serde_json::json!(["short", "日本語日本"]));
        assert_eq!(cut, [("a.b.1".to_owned(), 6)]);
    }
}
