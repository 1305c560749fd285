//! A bare tantivy index of the same listings: its default analysis, its query parser, its top documents.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tantivy::collector::TopDocs;
use tantivy::directory::MmapDirectory;
use tantivy::query::QueryParser;
use tantivy::schema::{Field, STORED, STRING, Schema, TEXT};
use tantivy::{Index as Tantivy, IndexReader, IndexWriter, TantivyDocument};

use super::made::Made;
use super::queries::Asked;
use super::times::Times;

/// Results that are asked for.
pub(super) const TOP: usize = 50;

/// Bytes of the writer.
const WRITER_BYTES: usize = 128_000_000;

/// Commits of one document that are timed.
const COMMITS: u64 = 30;

/// Name, description and labels, as text; the id is stored.
#[derive(Debug, Clone, Copy)]
struct Fields {
    id: Field,
    name: Field,
    description: Field,
    labels: Field,
}

/// The index.
pub(super) struct Index {
    tantivy: Tantivy,
    reader: IndexReader,
    parser: QueryParser,
    fields: Fields,
    listings: u64,
    /// How long adding and committing all listings took; none where the index was there already.
    pub(super) built: Option<Duration>,
}

impl Index {
    /// Fills an index with the first `listings` listings, or takes up one that holds so many.
    pub(super) fn open(dir: &Path, made: &Made, listings: u64) -> anyhow::Result<Self> {
        let mut schema = Schema::builder();
        let fields = Fields {
            id: schema.add_text_field("id", STRING | STORED),
            name: schema.add_text_field("name", TEXT),
            description: schema.add_text_field("description", TEXT),
            labels: schema.add_text_field("labels", TEXT),
        };
        std::fs::create_dir_all(dir)?;
        let index = Tantivy::open_or_create(MmapDirectory::open(dir)?, schema.build())?;
        let mut built = None;
        if index.reader()?.searcher().num_docs() < listings {
            let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BYTES)?;
            writer.delete_all_documents()?;
            let begun = Instant::now();
            for number in 1..=listings {
                writer.add_document(fields.document(made, number)?)?;
            }
            writer.commit()?;
            built = Some(begun.elapsed());
            writer.wait_merging_threads()?;
        }
        let text = vec![fields.name, fields.description, fields.labels];
        Ok(Self {
            reader: index.reader()?,
            parser: QueryParser::for_index(&index, text),
            tantivy: index,
            fields,
            listings,
            built,
        })
    }

    /// The best listings that hold any of the words.
    pub(super) fn search(&self, text: &str) -> anyhow::Result<usize> {
        let (query, _errors) = self.parser.parse_query_lenient(text);
        let top = TopDocs::with_limit(TOP).order_by_score();
        Ok(self.reader.searcher().search(&query, &top)?.len())
    }

    /// Answers each query once, in the form that `of` chooses.
    pub(super) fn times(&self, asked: &[Asked], of: fn(&Asked) -> &str) -> anyhow::Result<Times> {
        super::times::each(asked, |asked| self.search(of(asked)).map(drop))
    }

    /// How long a commit of one document takes.
    pub(super) fn commits(&self, made: &Made) -> anyhow::Result<Times> {
        let mut writer: IndexWriter = self.tantivy.writer_with_num_threads(1, WRITER_BYTES)?;
        let mut times = Times::default();
        for number in 1..=COMMITS {
            let document = self.fields.document(made, self.listings + number)?;
            let begun = Instant::now();
            writer.add_document(document)?;
            writer.commit()?;
            times.add(begun.elapsed());
        }
        writer.wait_merging_threads()?;
        Ok(times)
    }
}

impl Fields {
    fn document(self, made: &Made, number: u64) -> anyhow::Result<TantivyDocument> {
        let entry = made.entry(number).context("a listing of every number")?;
        let mut document = TantivyDocument::default();
        document.add_text(self.id, &entry.id);
        document.add_text(self.name, &entry.name);
        document.add_text(self.description, &entry.description);
        let labels: Vec<String> = entry.attributes.values().map(ToString::to_string).collect();
        document.add_text(self.labels, labels.join(" "));
        Ok(document)
    }
}
