//! The sets of judged queries in a folder.
//!
//! A set is a folder with `corpus.jsonl` (or `corpus.jsonl.gz`), `queries.jsonl` and `qrels.tsv`. A set with several forms of
//! its queries has `queries.FORM.jsonl`; one with several languages has `corpus.LANG.jsonl` too, and is measured within each
//! language and from each into English. A set without a corpus says in its README whose it shares: "The corpus is that of
//! the set NAME".

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde::Deserialize;

use super::corpus::lines;

/// Words of a README before the name of the set whose corpus is shared.
const SHARED: &str = "corpus is that of the set ";

/// The language that queries of others are measured into.
const PIVOT: &str = "en";

/// Queries on a corpus.
#[derive(Debug)]
pub(crate) struct Run {
    /// The set's, with the form of its queries where it has several.
    pub(crate) name: String,
    /// The set.
    set: String,
    pub(crate) corpus: PathBuf,
    pub(crate) queries: Vec<Asked>,
}

/// A query and what is relevant to it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) text: String,
    pub(crate) grades: HashMap<String, f64>,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    text: String,
}

/// All sets of the folder, or those that are wished; those on the same corpus one after the other.
pub(crate) fn read(dir: &Path, only: &[String]) -> anyhow::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for folder in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let folder = folder?.path();
        if folder.join("qrels.tsv").is_file() {
            runs.extend(set(dir, &folder).with_context(|| format!("{}", folder.display()))?);
        }
    }
    runs.retain(|run| only.is_empty() || only.iter().any(|name| run.name == *name || run.set == *name));
    runs.sort_by(|a, b| (&a.corpus, &a.name).cmp(&(&b.corpus, &b.name)));
    Ok(runs)
}

fn set(dir: &Path, folder: &Path) -> anyhow::Result<Vec<Run>> {
    let set = folder
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let grades = grades(&fs::read_to_string(folder.join("qrels.tsv"))?)?;
    let mut corpora = forms(folder, "corpus")?;
    if corpora.is_empty() {
        corpora = forms(&shared(dir, folder)?, "corpus")?;
    }
    let mut runs = Vec::new();
    for (form, path) in forms(folder, "queries")? {
        let queries = queries(&path, &grades)?;
        for (name, corpus) in pairs(set, &form, &corpora) {
            runs.push(Run {
                name,
                set: set.to_owned(),
                corpus,
                queries: queries.clone(),
            });
        }
    }
    Ok(runs)
}

/// Which corpora a form of queries is measured on.
fn pairs(set: &str, form: &str, corpora: &BTreeMap<String, PathBuf>) -> Vec<(String, PathBuf)> {
    let name = |parts: &[&str]| {
        parts
            .iter()
            .copied()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    };
    if let Some(corpus) = corpora.get("") {
        return vec![(name(&[set, form]), corpus.clone())];
    }
    let same = corpora
        .get(form)
        .map(|corpus| (name(&[set, form]), corpus.clone()));
    let across = corpora
        .get(PIVOT)
        .filter(|_| form != PIVOT)
        .map(|corpus| (name(&[set, form, PIVOT]), corpus.clone()));
    same.into_iter().chain(across).collect()
}

/// The files `STEM.jsonl` (form "") and `STEM.FORM.jsonl` of a folder, gzipped or not.
fn forms(folder: &Path, stem: &str) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let form = name
            .strip_suffix(".jsonl")
            .and_then(|name| name.strip_prefix(stem));
        if let Some(form) = form.filter(|form| form.is_empty() || form.starts_with('.')) {
            found.insert(form.trim_start_matches('.').to_owned(), path);
        }
    }
    Ok(found)
}

/// The folder of the set whose corpus this one shares.
fn shared(dir: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let readme =
        fs::read_to_string(folder.join("README.md")).context("no corpus, and no README that names one")?;
    let (_, rest) = readme
        .split_once(SHARED)
        .ok_or_else(|| anyhow!("no corpus, and the README names none"))?;
    let name: String = rest
        .chars()
        .take_while(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '_'))
        .collect();
    Ok(dir.join(name))
}

fn queries(path: &Path, grades: &HashMap<String, HashMap<String, f64>>) -> anyhow::Result<Vec<Asked>> {
    let mut queries = Vec::new();
    for line in lines(path)? {
        let Line { id, text } = serde_json::from_str(&line).with_context(|| format!("{}", path.display()))?;
        if let Some(grades) = grades.get(&id) {
            queries.push(Asked {
                text,
                grades: grades.clone(),
            });
        }
    }
    Ok(queries)
}

/// What is relevant to each query: `query TAB document TAB grade`.
fn grades(text: &str) -> anyhow::Result<HashMap<String, HashMap<String, f64>>> {
    let mut grades: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [query, document, grade] = fields.as_slice() else {
            return Err(anyhow!("qrels.tsv: {line}"));
        };
        let grade: f64 = grade
            .trim()
            .parse()
            .with_context(|| format!("qrels.tsv: {line}"))?;
        if grade > 0.0 {
            grades
                .entry((*query).to_owned())
                .or_default()
                .insert((*document).to_owned(), grade);
        }
    }
    Ok(grades)
}
