//! The little HTML that the pages need. Text goes in through [`Html::text`], which escapes it.

use std::fmt::Write as _;

/// A piece of HTML.
#[derive(Debug, Default)]
pub(crate) struct Html(String);

impl Html {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Markup that we wrote ourselves.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text from anywhere.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        self
    }

    /// `<tag>text</tag>`
    pub(crate) fn element(&mut self, tag: &'static str, text: &str) -> &mut Self {
        self.open(tag).text(text).close(tag)
    }

    /// `<tag>`
    pub(crate) fn open(&mut self, tag: &'static str) -> &mut Self {
        // Writing to a String cannot fail.
        _ = write!(self.0, "<{tag}>");
        self
    }

    /// `</tag>`
    pub(crate) fn close(&mut self, tag: &'static str) -> &mut Self {
        _ = writeln!(self.0, "</{tag}>");
        self
    }

    /// `<a href="href">text</a>`; `href` is a path or an https URL of ours.
    pub(crate) fn link(&mut self, href: &str, text: &str) -> &mut Self {
        self.raw("<a href=\"")
            .text(href)
            .raw("\">")
            .text(text)
            .raw("</a>")
    }

    /// Prose in which `code` stands between backquotes, as in doc comments.
    pub(crate) fn prose(&mut self, text: &str) -> &mut Self {
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 0 {
                self.text(part)
            } else {
                self.raw("<code>").text(part).raw("</code>")
            };
        }
        self
    }
}

/// A whole page.
#[derive(Debug)]
pub(crate) struct Page {
    title: String,
    body: Html,
}

impl Page {
    /// A page with a title, which is also its first heading.
    pub(crate) fn new(title: impl Into<String>, body: Html) -> Self {
        Self {
            title: title.into(),
            body,
        }
    }

    /// The page as text.
    pub(crate) fn render(self) -> String {
        let mut html = Html::new();
        html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        html.element("title", &self.title)
            .raw("<link rel=\"stylesheet\" href=\"/docs/style.css\">\n");
        html.raw("</head>\n<body>\n<nav>");
        html.link("/", "Start")
            .raw(" · ")
            .link("/search", "Search")
            .raw(" · ")
            .link("/docs", "API")
            .raw(" · ")
            .link("/docs/errors", "Errors");
        html.raw("</nav>\n<main>\n").element("h1", &self.title);
        html.0.push_str(&self.body.0);
        html.raw("</main>\n</body>\n</html>\n");
        html.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut body = Html::new();
        body.element("p", "<script>alert('x')</script> & \"more\"");
        let page = Page::new("a<b", body).render();
        assert!(page.contains("<title>a&lt;b</title>"));
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"));
        assert!(!page.contains("<script"));
    }

    #[test]
    fn backquotes_become_code() {
        let mut body = Html::new();
        body.prose("write `a<b` here");
        assert!(
            Page::new("t", body)
                .render()
                .contains("write <code>a&lt;b</code> here")
        );
    }
}
