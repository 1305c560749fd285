//! Text to vectors, for the catalog's semantic list: models that run in this process on the CPU, and models behind HTTP.
