//! One row in the making: what the file says of it is put in piece by piece, and what is wrong is written down.

mod settle;

use aip_protocol::json::Json;
use aip_protocol::listing::{ListingKind, Offer};
use aip_protocol::time::Timestamp;

use super::price::{self, Currency};
use super::{Options, Remark, Row, words};
use crate::limits::{
    IMPORT_REMARKS_MAX, LISTING_ATTRIBUTE_NAME_BYTES_MAX, LISTING_ATTRIBUTE_TEXT_BYTES_MAX,
    LISTING_ATTRIBUTES_MAX, LISTING_DESCRIPTION_BYTES_MAX, LISTING_LANG_BYTES_MAX, LISTING_LEVELS_MAX,
    LISTING_NAME_BYTES_MAX, LISTING_TAG_BYTES_MAX, LISTING_TAGS_MAX,
};

/// How good an id is as the name of a row; a better one wins, whatever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdRank {
    Page,
    Iri,
    Mpn,
    Gtin,
    Sku,
    Own,
}

/// A row in the making.
#[derive(Debug)]
pub(super) struct RowDraft<'a> {
    options: &'a Options,
    offer: Offer,
    id: Option<(IdRank, String)>,
    price: Option<price::Price>,
    sale: Option<price::Price>,
    is_sale_timed: bool,
    currency: Option<String>,
    flaws: Vec<Remark>,
    notes: Vec<Remark>,
}

impl<'a> RowDraft<'a> {
    /// `kind` is what such files usually offer.
    pub(super) fn new(kind: ListingKind, options: &'a Options) -> Self {
        let mut offer = Offer::new(options.kind.unwrap_or(kind), "", "");
        offer.lang.clone_from(&options.lang);
        Self {
            options,
            offer,
            id: None,
            price: None,
            sale: None,
            is_sale_timed: false,
            currency: None,
            flaws: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Something that keeps the row out.
    pub(super) fn flaw(&mut self, member: &str, what: impl Into<String>, todo: impl Into<String>) {
        push(&mut self.flaws, member, what.into(), todo.into());
    }

    /// Something that was left out, or is worth a look.
    pub(super) fn note(&mut self, member: &str, what: impl Into<String>, todo: impl Into<String>) {
        push(&mut self.notes, member, what.into(), todo.into());
    }

    /// A name of the row that does not change from one import to the next.
    pub(super) fn id(&mut self, rank: IdRank, text: &str) {
        if let Some(id) = self.words("listing_id", text)
            && self.id.as_ref().is_none_or(|(known, _)| rank > *known)
        {
            self.id = Some((rank, id));
        }
    }

    /// The first name that is given stays.
    pub(super) fn name(&mut self, text: &str) {
        if !self.offer.name.is_empty() {
            return;
        }
        if let Some(name) = self.words("name", text) {
            if name.len() > LISTING_NAME_BYTES_MAX {
                self.flaw(
                    "name",
                    format!("it has {} bytes", name.len()),
                    format!("shorten it to {LISTING_NAME_BYTES_MAX}"),
                );
            }
            self.offer.name = name;
        }
    }

    pub(super) fn description(&mut self, text: &str) {
        if !self.offer.description.is_empty() {
            return;
        }
        if let Some(text) = self.text("description", text) {
            if text.len() > LISTING_DESCRIPTION_BYTES_MAX {
                let todo = format!("shorten it to {LISTING_DESCRIPTION_BYTES_MAX}");
                self.flaw("description", format!("it has {} bytes", text.len()), todo);
            }
            self.offer.description = text;
        }
    }

    pub(super) fn kind(&mut self, text: &str) {
        match ListingKind::parse(text.trim()) {
            Some(kind) => self.offer.kind = kind,
            None => self.flaw(
                "kind",
                format!("`{}` is none", short(text)),
                "write capability, product or concept",
            ),
        }
    }

    pub(super) fn lang(&mut self, text: &str) {
        let Some(lang) = self.words("lang", text) else {
            return;
        };
        let lang = lang.replace('_', "-");
        let is_subtag = |part: &str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if (2..=LISTING_LANG_BYTES_MAX).contains(&lang.len()) && lang.split('-').all(is_subtag) {
            self.offer.lang = Some(lang);
        } else {
            self.note(
                "lang",
                format!("`{}` is left out", short(&lang)),
                "write a language tag, such as fr or pt-BR",
            );
        }
    }

    pub(super) fn tag(&mut self, text: &str) {
        let Some(tag) = self.words("tags", text) else {
            return;
        };
        if tag.len() > LISTING_TAG_BYTES_MAX || self.offer.tags.len() >= LISTING_TAGS_MAX {
            let todo = format!("a listing takes {LISTING_TAGS_MAX} of {LISTING_TAG_BYTES_MAX} bytes");
            self.note("tags", format!("`{}` is left out", short(&tag)), todo);
        } else if !self.offer.tags.contains(&tag) {
            self.offer.tags.push(tag);
        }
    }

    /// Tags in one text, with commas or semicolons between them.
    pub(super) fn tags(&mut self, text: &str) {
        for tag in text.split([',', ';']) {
            self.tag(tag);
        }
    }

    /// A price as it is written, perhaps with its currency. Which of two that differ is meant, nobody can tell.
    pub(super) fn price(&mut self, member: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let price = match self.read_price(text) {
            Ok(price) => price,
            Err((what, todo)) => return self.flaw(member, what, todo),
        };
        let units = |price: &price::Price| price::units(&price.amount);
        match &self.price {
            // The same again, such as `3.50` beside `3.50 EUR`: the one that says more stays.
            Some(known) if units(known) == units(&price) && price.currency == Currency::Unsaid => {}
            Some(known)
                if units(known) != units(&price)
                    || ![Currency::Unsaid, price.currency.clone()].contains(&known.currency) =>
            {
                let what = format!("it is {} and {}", known.amount, price.amount);
                self.flaw(
                    member,
                    what,
                    "keep the column of one price, and call the others otherwise",
                );
            }
            _ => self.price = Some(price),
        }
    }

    fn read_price(&self, text: &str) -> Result<price::Price, price::Wrong> {
        let price = price::read(text, self.options.decimal_comma)?;
        let is_said = self.options.decimal_comma || self.options.decimal_point;
        if !is_said && price::may_be_thousands(text) {
            let todo = "say which with --decimal-point or --decimal-comma";
            let what = format!("the point of `{}` may group thousands", short(text.trim()));
            return Err((what, todo.to_owned()));
        }
        Ok(price)
    }

    /// What it costs for now, in place of its price.
    pub(super) fn sale_price(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.read_price(text) {
            Ok(price) => self.sale = Some(price),
            Err((what, todo)) => self.flaw("sale_price", what, todo),
        }
    }

    /// The sale has a beginning and an end, and a listing would not know of them.
    pub(super) fn sale_is_timed(&mut self) {
        self.is_sale_timed = true;
    }

    /// The currency that the file gives apart from the price.
    pub(super) fn currency(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match price::sign(text) {
            Ok(Currency::Code(code)) => self.currency = Some(code),
            Ok(_) => self.flaw(
                "currency",
                format!("`{}` may be several", short(text)),
                "write three letters, such as USD",
            ),
            Err((what, todo)) => self.flaw("currency", what, todo),
        }
    }

    pub(super) fn availability(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let Some((available, more)) = words::availability(text) else {
            let todo = "write in stock or out of stock, true or false, or a number of pieces";
            return self.note("available", format!("`{}` is not understood", short(text)), todo);
        };
        self.offer.available = Some(available);
        if let Some(more) = more {
            self.attribute("availability", more.into());
        }
    }

    pub(super) fn expires_at(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match Timestamp::parse(text) {
            Ok(moment) => self.offer.expires_at = Some(moment),
            Err(_) => self.flaw(
                "expires_at",
                format!("`{}` is not a moment", short(text)),
                "write it as 2027-01-31T00:00:00Z",
            ),
        }
    }

    /// An attribute; the first value of a name stays.
    pub(super) fn attribute(&mut self, name: &str, value: Json) {
        let value = match value {
            Json::Str(text) => match self.text(name, &text) {
                Some(text) => Json::Str(text),
                None => return,
            },
            other => other,
        };
        if name.is_empty() || self.offer.attributes.contains(name) {
            return;
        }
        let is_long = value
            .as_str()
            .is_some_and(|text| text.len() > LISTING_ATTRIBUTE_TEXT_BYTES_MAX);
        if is_long
            || name.len() > LISTING_ATTRIBUTE_NAME_BYTES_MAX
            || self.offer.attributes.len() >= LISTING_ATTRIBUTES_MAX
        {
            let todo = format!(
                "a listing takes {LISTING_ATTRIBUTES_MAX} attributes of {LISTING_ATTRIBUTE_TEXT_BYTES_MAX} bytes"
            );
            return self.note(&short(name), "it is left out", todo);
        }
        self.offer.attributes.insert(name, value);
    }

    /// An attribute of text.
    pub(super) fn attribute_text(&mut self, name: &str, text: &str) {
        self.attribute(name, text.into());
    }

    /// A member that has no field of its own, such as a schema.
    pub(super) fn extra(&mut self, name: &str, value: Json) {
        let levels = levels(&value) + 1;
        if levels > LISTING_LEVELS_MAX {
            let todo = format!("a listing takes {LISTING_LEVELS_MAX}; make it flatter");
            return self.flaw(name, format!("with it, the listing has {levels} levels"), todo);
        }
        self.offer.extra.insert(name, value);
    }

    /// One line of words.
    fn words(&mut self, member: &str, text: &str) -> Option<String> {
        let text = self.text(member, text)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Text without spaces around it, line breaks as line feeds. Empty text says nothing.
    fn text(&mut self, member: &str, text: &str) -> Option<String> {
        let text = text.trim();
        let is_stray = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if let Some(stray) = text.chars().find(|c| is_stray(*c)) {
            let what = format!("it holds the control character {}", stray.escape_unicode());
            self.flaw(&short(member), what, "take it out; is the file text?");
            return None;
        }
        (!text.is_empty()).then(|| text.replace("\r\n", "\n").replace('\r', "\n"))
    }
}

/// A row that cannot even be looked at.
pub(super) fn broken(number: usize, line: Option<u64>, what: impl Into<String>, todo: &str) -> Row {
    let mut flaws = Vec::new();
    push(&mut flaws, "row", what.into(), todo.to_owned());
    Row {
        number,
        line,
        listing_id: None,
        offer: None,
        flaws,
        notes: Vec::new(),
    }
}

fn push(remarks: &mut Vec<Remark>, member: &str, what: String, todo: String) {
    if remarks.len() < IMPORT_REMARKS_MAX {
        remarks.push(Remark {
            member: member.to_owned(),
            what,
            todo,
        });
    }
}

/// Arrays and objects inside each other; the value was read within a bound of them.
fn levels(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Json::Object(members) => {
            1 + members
                .iter()
                .map(|(_, value)| levels(value))
                .max()
                .unwrap_or_default()
        }
        _ => 0,
    }
}

/// The beginning of a text of strangers, to be shown.
pub(super) fn short(text: &str) -> String {
    const CHARS: usize = 40;
    let mut shown: String = text.chars().take(CHARS).collect();
    if text.chars().nth(CHARS).is_some() {
        shown.push('…');
    }
    shown
}
