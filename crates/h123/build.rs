//! The data files are compiled in; a change to any of them, or a new one, compiles them in again.

fn main() {
    for folder in ["studies", "networks", "pages"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
