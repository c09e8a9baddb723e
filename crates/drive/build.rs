//! The servers' files are compiled in; a change to any of them, or a new one, compiles them in again.

fn main() {
    println!("cargo::rerun-if-changed=../../servers");
}
