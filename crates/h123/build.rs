//! Rebuilds the binary when one of the data files that it contains changes.

fn main() {
    for folder in ["studies", "networks", "pages"] {
        println!("cargo::rerun-if-changed=../../{folder}");
    }
}
