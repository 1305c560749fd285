//! Everything that names RocksDB.
