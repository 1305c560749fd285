//! schema.org `Product`s in JSON-LD: alone, in lists, in `@graph`, in the scripts of a web page, with one or several
//! `Offer`s.
//!
//! Contexts are not loaded and terms are not expanded: what pages and shops write is the short form.

use std::cell::OnceCell;
use std::collections::HashMap;

use aip_protocol::listing::ListingKind;
use serde_json::value::RawValue;

use super::json::{Loose, Shape, shape, values};
use super::row::{IdRank, RowDraft, broken, short};
use super::{Format, ImportError, Options, Row, page, price, words};
use crate::limits::{IMPORT_LEVELS_MAX, IMPORT_OFFERS_MAX, IMPORT_ROWS_MAX};

/// Types whose nodes are rows.
const PRODUCTS: [&str; 6] = [
    "Product",
    "IndividualProduct",
    "ProductModel",
    "SomeProducts",
    "Vehicle",
    "Car",
];
/// Members that lead from other nodes to products.
const WAYS: [&str; 9] = [
    "@graph",
    "itemListElement",
    "item",
    "mainEntity",
    "hasVariant",
    "itemOffered",
    "hasOfferCatalog",
    "dataFeedElement",
    "makesOffer",
];
/// Members that become attributes, and their names there.
const ATTRIBUTES: [(&str, &str); 12] = [
    ("mpn", "mpn"),
    ("model", "model"),
    ("color", "color"),
    ("size", "size"),
    ("material", "material"),
    ("pattern", "pattern"),
    ("weight", "weight"),
    ("width", "width"),
    ("height", "height"),
    ("depth", "depth"),
    ("itemCondition", "condition"),
    ("url", "url"),
];
/// Types of a price that is asked of everybody, the first of them before the others. List prices and those that are struck
/// through are not asked of anybody.
const ASKED: [&str; 3] = ["", "SalePrice", "RegularPrice"];
const GTINS: [&str; 6] = ["gtin", "gtin14", "gtin13", "gtin12", "gtin8", "isbn"];

/// A node that others may name. It is read once, however often it is named.
struct Node<'a> {
    raw: &'a RawValue,
    read: OnceCell<Option<Loose>>,
}

type Nodes<'a> = HashMap<String, Node<'a>>;

/// What a document holds.
#[derive(Default)]
struct Found<'a> {
    products: Vec<&'a RawValue>,
    /// Other nodes by `@id`: offers and brands are often named by it.
    nodes: Nodes<'a>,
}

pub(super) fn read(text: &str, options: &Options) -> Result<Vec<Row>, ImportError> {
    let malformed = |why: String| ImportError::Malformed {
        format: Format::JsonLd,
        why,
    };
    let texts = if text.trim_start().starts_with('<') {
        page::scripts(text)
    } else {
        vec![text]
    };
    let mut found = Found::default();
    for text in texts {
        for value in values(text).map_err(|error| malformed(error.to_string()))? {
            gather(value, IMPORT_LEVELS_MAX, &mut found).map_err(|error| malformed(error.to_string()))?;
        }
        if found.products.len() > IMPORT_ROWS_MAX {
            return Err(ImportError::TooManyRows);
        }
    }
    if found.products.is_empty() {
        return Err(malformed("it holds no node of @type Product".to_owned()));
    }
    let rows = found.products.iter().zip(1..);
    Ok(rows
        .map(|(raw, number)| row(raw, number, &found.nodes, options))
        .collect())
}

fn gather<'a>(raw: &'a RawValue, levels_left: usize, found: &mut Found<'a>) -> Result<(), serde_json::Error> {
    let Some(levels_left) = levels_left.checked_sub(1) else {
        return Ok(());
    };
    let members = match shape(raw)? {
        Shape::Array(items) => {
            return items
                .into_iter()
                .try_for_each(|item| gather(item, levels_left, found));
        }
        Shape::Object(members) => members,
        Shape::Scalar => return Ok(()),
    };
    let member = |name: &str| {
        members
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, raw)| *raw)
    };
    if member("@type").is_some_and(is_product) {
        found.products.push(raw);
        return Ok(());
    }
    let id = member("@id").and_then(|id| serde_json::from_str(id.get()).ok());
    if let Some(id) = id
        && members.len() > 1
        && found.nodes.len() < IMPORT_ROWS_MAX
    {
        let read = OnceCell::new();
        found.nodes.insert(id, Node { raw, read });
    }
    WAYS.iter()
        .filter_map(|way| member(way))
        .try_for_each(|next| gather(next, levels_left, found))
}

/// `Product`, `schema:Product`, `https://schema.org/Product`, also as one of several types.
fn is_product(types: &RawValue) -> bool {
    let one = |text: &str| PRODUCTS.contains(&last_word(text));
    match Loose::read(types) {
        Ok(Loose::Text(text)) => one(&text),
        Ok(Loose::Array(types)) => types.iter().filter_map(Loose::text).any(one),
        _ => false,
    }
}

fn last_word(text: &str) -> &str {
    text.rsplit(['/', '#', ':']).next().unwrap_or_default()
}

fn row(raw: &RawValue, number: usize, nodes: &Nodes<'_>, options: &Options) -> Row {
    let product = match Loose::read(raw) {
        Ok(product) => product,
        Err(why) => return broken(number, None, why, "mend the node"),
    };
    let mut draft = RowDraft::new(ListingKind::Product, options);
    identify(&mut draft, &product);
    describe(&mut draft, &product, nodes);
    properties(&mut draft, &product);
    offers(&mut draft, &product, nodes);
    draft.finish(number, None)
}

fn identify(draft: &mut RowDraft<'_>, product: &Loose) {
    let said = |names: &[&str]| names.iter().find_map(|name| product.get(name).and_then(text));
    draft.id(IdRank::Sku, said(&["sku", "productID"]).unwrap_or_default());
    draft.id(IdRank::Gtin, said(&GTINS).unwrap_or_default());
    draft.id(IdRank::Mpn, said(&["mpn", "identifier"]).unwrap_or_default());
    draft.id(IdRank::Iri, said(&["@id"]).unwrap_or_default());
    draft.id(IdRank::Page, said(&["url"]).unwrap_or_default());
    for (names, attribute) in [(&["sku"][..], "sku"), (&GTINS[..], "gtin")] {
        draft.attribute_text(attribute, said(names).unwrap_or_default());
    }
}

fn describe(draft: &mut RowDraft<'_>, product: &Loose, nodes: &Nodes<'_>) {
    let said = |name: &str| product.get(name).and_then(text);
    draft.name(said("name").unwrap_or_default());
    draft.description(said("description").unwrap_or_default());
    let tagged = product.get("name").and_then(|name| name.text_of(&["@language"]));
    if let Some(lang) = tagged.or(said("inLanguage")) {
        draft.lang(lang);
    }
    for name in ["brand", "manufacturer"] {
        let brand = product.get(name).map(|brand| follow(brand, nodes));
        draft.attribute_text("brand", brand.and_then(text).unwrap_or_default());
    }
    draft.attribute_text("category", said("category").unwrap_or_default());
    match product.get("keywords") {
        Some(Loose::Array(words)) => words.iter().filter_map(text).for_each(|word| draft.tag(word)),
        Some(words) => draft.tags(text(words).unwrap_or_default()),
        None => {}
    }
}

fn properties(draft: &mut RowDraft<'_>, product: &Loose) {
    for (name, attribute) in ATTRIBUTES {
        let Some(value) = product.get(name) else {
            continue;
        };
        let unit = value.text_of(&["unitText", "unitCode"]);
        match (text(value), unit) {
            (Some(value), Some(unit)) => draft.attribute_text(attribute, &format!("{value} {unit}")),
            (Some(value), None) if name == "itemCondition" => {
                draft.attribute_text(attribute, last_word(value));
            }
            (Some(value), None) => draft.attribute_text(attribute, value),
            (None, _) => {}
        }
    }
    for property in list(product.get("additionalProperty")) {
        let name = words::attribute_name(property.text_of(&["name", "propertyID"]).unwrap_or_default());
        match property.get("value").and_then(Loose::plain) {
            Some(value) => draft.attribute(&name, value),
            None => draft.note(
                &short(&name),
                "it is left out",
                "a property has a name and a value of text, number or truth",
            ),
        }
    }
}

/// One way to buy it.
#[derive(Debug, Default)]
struct Way {
    price: String,
    currency: String,
    availability: String,
}

/// Several offers make one listing: the lowest price of those that can be had, in the currency of the first.
fn offers(draft: &mut RowDraft<'_>, product: &Loose, nodes: &Nodes<'_>) {
    let mut ways = Vec::new();
    for offer in list(product.get("offers")) {
        let offer = follow(offer, nodes);
        let outer = way(offer);
        let mut inner = list(offer.get("offers"))
            .map(|inner| way(follow(inner, nodes)))
            .peekable();
        if inner.peek().is_none() {
            ways.push(outer);
        } else {
            // What the whole says of the currency holds of its parts.
            let whole = |way: Way| match way.currency.as_str() {
                "" => Way {
                    currency: outer.currency.clone(),
                    ..way
                },
                _ => way,
            };
            ways.extend(inner.take(IMPORT_OFFERS_MAX + 1 - ways.len()).map(whole));
        }
        if ways.len() > IMPORT_OFFERS_MAX {
            ways.truncate(IMPORT_OFFERS_MAX);
            let what =
                format!("it has more than {IMPORT_OFFERS_MAX} offers, and the others are not looked at");
            draft.note("price", what, "offer some of them as products of their own");
            break;
        }
    }
    let is_had = |way: &Way| words::availability(&way.availability).is_none_or(|(available, _)| available);
    let units =
        |way: &Way| price::read(&way.price, false).map_or(u128::MAX, |price| price::units(&price.amount));
    let Some(currency) = ways.first().map(|way| way.currency.clone()) else {
        return;
    };
    let all = ways.len();
    ways.retain(|way| way.currency == currency);
    ways.sort_by_key(|way| (!is_had(way), units(way)));
    let Some(best) = ways.first() else {
        return;
    };
    draft.price("price", &best.price);
    draft.currency(&best.currency);
    draft.availability(&best.availability);
    if all > 1 {
        let todo = "offer each as a product of its own if they differ in more than the price";
        draft.note(
            "price",
            format!("it has {all} offers, and the best is taken"),
            todo,
        );
    }
}

/// The price among several that is asked of everybody who buys.
fn specification(offer: &Loose) -> Option<&Loose> {
    let word =
        |node: &Loose, name: &str| last_word(node.get(name).and_then(text).unwrap_or_default()).to_owned();
    let is_for_all = |node: &&Loose| {
        node.get("validForMemberTier").is_none() && !word(node, "@type").ends_with("ChargeSpecification")
    };
    ASKED.iter().find_map(|asked| {
        list(offer.get("priceSpecification"))
            .filter(is_for_all)
            .find(|node| word(node, "priceType") == *asked)
    })
}

fn way(offer: &Loose) -> Way {
    let specification = specification(offer);
    let said = |names: &[&str]| {
        let own = names.iter().find_map(|name| offer.get(name).and_then(text));
        let specified = || {
            names
                .iter()
                .find_map(|name| specification?.get(name).and_then(text))
        };
        own.or_else(specified).unwrap_or_default().to_owned()
    };
    Way {
        price: said(&["price", "lowPrice"]),
        currency: said(&["priceCurrency"]),
        availability: said(&["availability"]),
    }
}

/// A node that is only named by its `@id`, looked up.
fn follow<'n>(value: &'n Loose, nodes: &'n Nodes<'_>) -> &'n Loose {
    let is_name = matches!(value, Loose::Object(members) if members.len() == 1);
    let named = value
        .text_of(&["@id"])
        .filter(|_| is_name)
        .and_then(|id| nodes.get(id));
    let node = named.and_then(|node| node.read.get_or_init(|| Loose::read(node.raw).ok()).as_ref());
    node.unwrap_or(value)
}

/// The items of an array, or the one value that stands for them.
fn list(value: Option<&Loose>) -> impl Iterator<Item = &Loose> {
    let items: &[Loose] = match value {
        Some(Loose::Array(items)) => items,
        Some(Loose::Null) | None => &[],
        Some(one) => std::slice::from_ref(one),
    };
    items.iter()
}

/// What a value says: itself, or `@value`, `value` or `name` of it; of several, the first that says something.
fn text(value: &Loose) -> Option<&str> {
    match value {
        Loose::Array(items) => items.iter().find_map(text),
        Loose::Object(_) => value.text_of(&["@value", "value", "name", "@id"]),
        other => other.text(),
    }
}
