//! Builds again when a migration is added: the schema is compiled into the room.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
