//! Turns the OpenAPI document into the page that people read.

use serde_json::{Map, Value};

use super::{Html, Page};

/// The order of methods on one path.
const METHODS: &[&str] = &["get", "post", "put", "patch", "delete"];
/// Where the document keeps its schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// The API page.
pub(super) fn render(document: &Value) -> String {
    let mut html = Html::new();
    html.raw("<p>")
        .prose(text(&document["info"], "description"))
        .raw(" The same for tools: ");
    html.link("/openapi.json", "openapi.json").raw(".</p>\n");
    let tags = || document["tags"].as_array().into_iter().flatten();
    html.raw("<ul class=\"contents\">\n");
    for tag in tags() {
        contents(&mut html, document, tag);
    }
    html.raw("</ul>\n");
    for tag in tags() {
        section(&mut html, document, tag);
    }
    html.element("h2", "Objects");
    for (name, schema) in object(at(document, "/components/schemas")) {
        html.raw("<h3 id=\"object-")
            .text(name)
            .raw("\"><code>")
            .text(name)
            .raw("</code></h3>\n");
        html.raw("<p>").prose(text(schema, "description")).raw("</p>\n");
        members(&mut html, schema);
    }
    Page::new("API", html).render()
}

/// One line for a tag, with a link to each of its operations.
fn contents(html: &mut Html, document: &Value, tag: &Value) {
    let name = text(tag, "name");
    html.raw("<li>").text(&capitalised(name)).raw(": ");
    for (at, (method, path, operation)) in operations(document, name).enumerate() {
        if at > 0 {
            html.raw(" · ");
        }
        html.link(&format!("#{}", anchor(method, path)), text(operation, "summary"));
    }
    html.raw("</li>\n");
}

fn section(html: &mut Html, document: &Value, tag: &Value) {
    let name = text(tag, "name");
    html.element("h2", &capitalised(name))
        .raw("<p>")
        .prose(text(tag, "description"))
        .raw("</p>\n");
    for (method, path, operation) in operations(document, name) {
        operation_of(html, method, path, operation);
    }
}

/// The operations of a tag, by path.
fn operations<'a>(document: &'a Value, tag: &'a str) -> impl Iterator<Item = (&'a str, &'a str, &'a Value)> {
    let of_path = |(path, item): (&'a String, &'a Value)| {
        METHODS
            .iter()
            .map(move |method| (*method, path.as_str(), &item[*method]))
    };
    object(&document["paths"])
        .flat_map(of_path)
        .filter(move |(_, _, operation)| at(operation, "/tags/0") == tag)
}

/// Where an operation stands on the page.
fn anchor(method: &str, path: &str) -> String {
    let words = path
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = std::iter::once(method).chain(words).collect();
    words.join("-")
}

fn operation_of(html: &mut Html, method: &str, path: &str, operation: &Value) {
    html.raw("<h3 id=\"")
        .text(&anchor(method, path))
        .raw("\"><code>")
        .text(&method.to_uppercase())
        .raw(" ")
        .text(path)
        .raw("</code></h3>\n");
    html.raw("<p><strong>")
        .text(text(operation, "summary"))
        .raw("</strong></p>\n");
    if !text(operation, "description").is_empty() {
        html.raw("<p>")
            .prose(text(operation, "description"))
            .raw("</p>\n");
    }
    if operation["security"].is_array() {
        html.raw("<p>Needs <code>Authorization: Bearer</code>.</p>\n");
    }
    parameters(html, operation);
    if operation["requestBody"].is_object() {
        html.raw("<p>Body: ");
        content(html, &operation["requestBody"]);
        let description = text(&operation["requestBody"], "description");
        if !description.is_empty() {
            html.raw(". ").prose(description);
        }
        html.raw("</p>\n");
    }
    responses(html, operation);
}

fn parameters(html: &mut Html, operation: &Value) {
    let Some(parameters) = operation["parameters"].as_array().filter(|p| !p.is_empty()) else {
        return;
    };
    html.raw("<table>\n<tr><th>Parameter</th><th>In</th><th>What</th></tr>\n");
    for parameter in parameters {
        html.raw("<tr><td><code>")
            .text(text(parameter, "name"))
            .raw("</code></td><td>");
        html.text(text(parameter, "in"))
            .raw("</td><td>")
            .prose(text(parameter, "description"));
        if let Some(example) = parameter["example"].as_str() {
            html.raw(", as in <code>").text(example).raw("</code>");
        }
        html.raw("</td></tr>\n");
    }
    html.raw("</table>\n");
}

fn responses(html: &mut Html, operation: &Value) {
    html.raw("<table>\n<tr><th>Answer</th><th>When</th><th>Content</th></tr>\n");
    for (status, response) in object(&operation["responses"]) {
        html.raw("<tr><td>")
            .text(status)
            .raw("</td><td>")
            .prose(text(response, "description"))
            .raw("</td><td>");
        content(html, response);
        html.raw("</td></tr>\n");
    }
    html.raw("</table>\n");
}

/// The media types of a body or an answer, each with its object.
fn content(html: &mut Html, holder: &Value) {
    for (at, (media_type, content)) in object(&holder["content"]).enumerate() {
        if at > 0 {
            html.raw(", or ");
        }
        html.raw("<code>").text(media_type).raw("</code> ");
        type_of(html, &content["schema"]);
    }
}

fn members(html: &mut Html, schema: &Value) {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    html.raw("<table>\n<tr><th>Member</th><th>Type</th><th>What</th></tr>\n");
    for (name, member) in object(&schema["properties"]) {
        html.raw("<tr><td><code>").text(name).raw("</code></td><td>");
        type_of(html, member);
        if !required.contains(&name.as_str()) {
            html.raw(", may be absent");
        }
        html.raw("</td><td>")
            .prose(text(member, "description"))
            .raw("</td></tr>\n");
    }
    html.raw("</table>\n");
}

/// The type of a schema in words, with a link where it is an object of its own.
fn type_of(html: &mut Html, schema: &Value) {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|target| target.strip_prefix(SCHEMAS))
    {
        html.link(&format!("#object-{name}"), name);
        return;
    }
    for key in ["oneOf", "allOf", "anyOf"] {
        for (at, one) in schema[key].as_array().into_iter().flatten().enumerate() {
            if at > 0 {
                html.raw(" or ");
            }
            type_of(html, one);
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => {
            html.raw("list of ");
            type_of(html, &schema["items"]);
        }
        Value::String(kind) => {
            html.text(kind);
        }
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            html.text(&kinds.join(" or "));
        }
        _ => {}
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or("")
}

/// What a JSON pointer leads to; null where it leads nowhere.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_every_object_is_on_the_page() {
        let document = serde_json::to_value(crate::openapi::document()).unwrap();
        let page = render(&document);
        let mut anchors = std::collections::BTreeSet::new();
        for (path, item) in object(&document["paths"]) {
            for method in item.as_object().unwrap().keys() {
                let anchor = anchor(method, path);
                assert!(page.contains(&format!("<h3 id=\"{anchor}\">")), "{anchor}");
                assert!(page.contains(&format!("<a href=\"#{anchor}\">")), "{anchor}");
                assert!(anchors.insert(anchor), "two of {method} {path}");
                assert!(
                    page.contains(&format!("<code>{} {path}</code>", method.to_uppercase())),
                    "{method} {path}"
                );
            }
        }
        for (name, _) in object(&document["components"]["schemas"]) {
            assert!(page.contains(&format!("id=\"object-{name}\"")), "{name}");
        }
        assert!(!page.contains("<script"));
    }
}
