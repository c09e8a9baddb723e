//! The files of servers and clients are compiled in; a change to any of them, or a new one, compiles them in
//! again.

fn main() {
    println!("cargo::rerun-if-changed=../../servers");
    println!("cargo::rerun-if-changed=../../clients");
}
