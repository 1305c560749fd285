//! Words of foreign lists: whether something can be had, and what a column is called.

/// Whether it can be had now, and how the listing calls that where it is more than yes or no.
pub(super) fn availability(text: &str) -> Option<(bool, Option<&'static str>)> {
    // `https://schema.org/InStock`, `schema:InStock`, `in_stock` and `In stock` are one word.
    let word = text.trim().trim_end_matches('/').rsplit(['/', '#', ':']).next()?;
    if let Ok(count) = word.parse::<u64>() {
        return Some((count > 0, None));
    }
    Some(match key(word).as_str() {
        "instock" | "available" | "true" | "yes" | "y" | "oui" | "ja" | "да" | "sí" | "si" => (true, None),
        "вналичии" | "enstock" | "auflager" | "vorrätig" | "lieferbar" | "disponible" => {
            (true, None)
        }
        "limitedavailability" => (true, Some("limited")),
        "onlineonly" => (true, Some("online_only")),
        "instoreonly" => (true, Some("in_store_only")),
        "madetoorder" => (true, Some("made_to_order")),
        "preorder" | "presale" => (false, Some("preorder")),
        "backorder" => (false, Some("backorder")),
        "discontinued" => (false, Some("discontinued")),
        "reserved" => (false, Some("reserved")),
        "outofstock" | "soldout" | "unavailable" | "false" | "no" | "n" | "non" | "nein" | "нет" => {
            (false, None)
        }
        "нетвналичии" | "rupture" | "ausverkauft" | "agotado" => (false, None),
        _ => return None,
    })
}

/// What a column of a table, or a member of a feed, is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Column {
    Id,
    Sku,
    Gtin,
    Mpn,
    Page,
    Name,
    Description,
    Price,
    SalePrice,
    SaleDates,
    Currency,
    Available,
    Brand,
    Category,
    Tags,
    Lang,
    Kind,
    Expires,
}

impl Column {
    /// Which one a header names, in some languages; `None` for one that becomes an attribute.
    pub(super) fn named(header: &str) -> Option<Self> {
        Some(match key(header).as_str() {
            "listingid" | "id" | "productid" | "itemid" | "offerid" | "uid" | "код" | "кодтовара" => {
                Self::Id
            }
            "sku" | "variantsku" | "article" | "articlenumber" | "артикул" | "artikelnummer"
            | "artikelnr" | "référence" | "reference" | "ref" | "referencia" => Self::Sku,
            "gtin" | "ean" | "gtin8" | "gtin12" | "gtin13" | "gtin14" | "upc" | "isbn" | "barcode"
            | "variantbarcode" | "штрихкод" | "eannummer" => Self::Gtin,
            "mpn" | "manufacturerpartnumber" | "partnumber" => Self::Mpn,
            "url" | "link" | "producturl" | "productlink" | "ссылка" => Self::Page,
            "name"
            | "title"
            | "productname"
            | "producttitle"
            | "название"
            | "наименование"
            | "nom"
            | "titre"
            | "bezeichnung"
            | "produktname"
            | "titel"
            | "nombre"
            | "título"
            | "titulo"
            | "名称"
            | "商品名" => Self::Name,
            "description" | "longdescription" | "bodyhtml" | "body" | "описание" | "beschreibung"
            | "descripción" | "descripcion" | "描述" | "説明" => Self::Description,
            "price" | "variantprice" | "unitprice" | "regularprice" | "цена" | "prix" | "preis"
            | "precio" | "价格" | "価格" => Self::Price,
            "saleprice" => Self::SalePrice,
            "salepriceeffectivedate" => Self::SaleDates,
            "currency" | "pricecurrency" | "валюта" | "devise" | "währung" | "moneda" => {
                Self::Currency
            }
            "available" | "availability" | "instock" | "stock" | "stockstatus" | "quantity" | "qty"
            | "inventory" | "наличие" | "disponibilité" | "verfügbarkeit" | "disponibilidad" => {
                Self::Available
            }
            "brand"
            | "vendor"
            | "manufacturer"
            | "marque"
            | "marke"
            | "hersteller"
            | "бренд"
            | "производитель"
            | "marca" => Self::Brand,
            "category" | "producttype" | "productcategory" | "categories" | "категория" | "catégorie"
            | "kategorie" | "categoría" | "categoria" => Self::Category,
            "tags" | "keywords" | "теги" => Self::Tags,
            "lang" | "language" | "язык" | "langue" | "sprache" | "idioma" => Self::Lang,
            "kind" => Self::Kind,
            "expiresat" | "expirationdate" => Self::Expires,
            _ => return None,
        })
    }
}

/// Letters and digits alone, in lower case.
pub(super) fn key(word: &str) -> String {
    word.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The name of an attribute: letters and digits in lower case, `_` for what is between them.
pub(super) fn attribute_name(header: &str) -> String {
    let words = header
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

/// Pictures are no text to find a thing by.
pub(super) fn is_image(header: &str) -> bool {
    let key = key(header);
    ["image", "additionalimage", "picture", "photo"]
        .iter()
        .any(|word| key.starts_with(word))
}
