//! What the search page looks like.

use aip_protocol::name::Handle;
use url::form_urlencoded::Serializer;

use crate::app::App;
use crate::routes::docs::{Html, Page};
use crate::routes::search::{Answer, ResultItem};

/// Characters of a description on a card; the whole one is one click away.
const DESCRIPTION_CHARS_MAX: usize = 300;
/// Tags on a card.
const TAGS_MAX: usize = 8;

const KINDS: [(&str, &str); 4] = [
    ("", "anything"),
    ("capability", "capabilities"),
    ("product", "products"),
    ("concept", "knowledge"),
];
const AVAILABILITY: [(&str, &str); 3] = [
    ("", "available or not"),
    ("true", "available"),
    ("false", "not available"),
];

/// The fields that were filled in.
#[derive(Debug, Default)]
pub(super) struct Asked(Vec<(&'static str, String)>);

impl Asked {
    /// Adds a field.
    pub(super) fn push(&mut self, name: &'static str, value: String) {
        self.0.push((name, value));
    }

    /// Names and values.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    fn get(&self, name: &str) -> &str {
        let field = self.fields().find(|(known, _)| *known == name);
        field.map_or("", |(_, value)| value)
    }

    /// The page after this one.
    fn next(&self, cursor: &str) -> String {
        let page = "/search?";
        let mut query = Serializer::for_suffix(page.to_owned(), page.len());
        query.extend_pairs(self.fields().filter(|(name, _)| *name != "cursor"));
        query.append_pair("cursor", cursor).finish()
    }
}

/// The page, with what was found or with what is to be mended.
pub(super) fn page(app: &App, asked: &Asked, outcome: Result<Answer, String>) -> String {
    let mut html = Html::new();
    form(&mut html, asked);
    html.raw("<section id=\"results\" aria-live=\"polite\">\n");
    match outcome {
        Ok(answer) => results(&mut html, app, asked, &answer),
        Err(sentence) => {
            html.raw("<p class=\"refusal\" role=\"alert\">")
                .prose(&sentence)
                .raw("</p>\n");
        }
    }
    html.raw("</section>\n<script src=\"/search.js\" defer></script>\n");
    Page::new(format!("Search {}", app.domain), html).render()
}

fn form(html: &mut Html, asked: &Asked) {
    html.raw("<form class=\"search\" action=\"/search\" role=\"search\">\n");
    html.raw("<input class=\"text\" type=\"search\" name=\"q\" aria-label=\"What to look for\" autofocus maxlength=\"2000\" value=\"")
        .text(asked.get("q"))
        .raw("\">\n<button>Search</button>\n<details")
        .raw(if has_filter(asked) { " open" } else { "" })
        .raw("><summary>Filters</summary>\n");
    select(html, "kind", "Kind", &KINDS, asked);
    select(html, "available", "Availability", &AVAILABILITY, asked);
    field(html, "price_min", "Price from", "0", asked);
    field(html, "price_max", "to", "12.50", asked);
    field(html, "currency", "Currency", "EUR", asked);
    field(html, "category", "Category", "", asked);
    field(html, "lang", "Language", "fr", asked);
    html.raw("</details>\n</form>\n");
}

fn has_filter(asked: &Asked) -> bool {
    asked.fields().any(|(name, _)| name != "q" && name != "cursor")
}

fn field(html: &mut Html, name: &'static str, label: &'static str, example: &'static str, asked: &Asked) {
    html.raw("<label>")
        .raw(label)
        .raw(" <input name=\"")
        .raw(name)
        .raw("\" placeholder=\"")
        .raw(example)
        .raw("\" value=\"")
        .text(asked.get(name))
        .raw("\"></label>\n");
}

fn select(
    html: &mut Html,
    name: &'static str,
    label: &'static str,
    choices: &[(&'static str, &'static str)],
    asked: &Asked,
) {
    html.raw("<label>")
        .raw(label)
        .raw(" <select name=\"")
        .raw(name)
        .raw("\">");
    for (value, shown) in choices {
        let selected = if asked.get(name) == *value {
            "\" selected>"
        } else {
            "\">"
        };
        html.raw("<option value=\"")
            .raw(value)
            .raw(selected)
            .raw(shown)
            .raw("</option>");
    }
    html.raw("</select></label>\n");
}

fn results(html: &mut Html, app: &App, asked: &Asked, answer: &Answer) {
    if answer.results.is_empty() {
        html.raw("<p>Nothing here. Fewer words or filters may find more.</p>\n");
    }
    if !answer.degraded.is_empty() {
        html.raw("<p class=\"note\">Found by words alone just now, not by meaning.</p>\n");
    }
    html.raw("<ol class=\"cards\">\n");
    for item in &answer.results {
        card(html, app, item);
    }
    html.raw("</ol>\n");
    if let Some(cursor) = &answer.next_cursor {
        html.raw("<p>").link(&asked.next(cursor), "More").raw("</p>\n");
    }
}

fn card(html: &mut Html, app: &App, item: &ResultItem) {
    html.raw("<li>\n<h2>")
        .text(&item.name)
        .raw("</h2>\n<p class=\"facts\"><span class=\"kind\">");
    html.raw(item.kind).raw("</span>");
    if let Some(price) = &item.price_text {
        html.raw(" <strong class=\"price\">")
            .text(price)
            .raw(" ")
            .text(item.currency.as_deref().unwrap_or_default())
            .raw("</strong>");
    }
    if item.available == Some(false) {
        html.raw(" <span class=\"gone\">not available</span>");
    }
    html.raw(" <span class=\"trust\">trust ")
        .text(&format!("{:.2}", item.trust_score))
        .raw("</span></p>\n<p>")
        .text(&shortened(&item.description))
        .raw("</p>\n");
    for tag in item.tags.iter().take(TAGS_MAX) {
        html.raw("<span class=\"tag\">").text(tag).raw("</span> ");
    }
    agent(html, app, item);
    html.raw("</li>\n");
}

fn agent(html: &mut Html, app: &App, item: &ResultItem) {
    let handle = Handle::parse(&item.agent.handle);
    let shown = handle
        .as_ref()
        .map_or_else(|_| item.agent.handle.clone(), Handle::to_string);
    html.raw("<p class=\"agent\"><code class=\"handle\">")
        .text(&shown)
        .raw("</code> <button type=\"button\" class=\"copy\" hidden data-text=\"")
        .text(&shown)
        .raw("\">Copy handle</button> ");
    html.link(&format!("/api/v1/resolve/{}", item.agent.handle), "Resolve");
    if item.source_hub == app.domain.as_str()
        && let Ok(handle) = handle
    {
        html.raw(" · ").link(&format!("/agents/{}", handle.name), "Agent");
    }
    html.raw(" · ")
        .link(&format!("/api/v1/listings/{}", item.id), "Listing")
        .raw("</p>\n");
}

/// The first characters, and a sign that there are more.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
