//! Links the image with its own memory layout.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=linker.ld");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
        let script = PathBuf::from(manifest).join("linker.ld");
        println!("cargo::rustc-link-arg-bins=-T{}", script.display());
        println!("cargo::rustc-link-arg-bins=--no-dynamic-linker");
        println!("cargo::rustc-link-arg-bins=-zmax-page-size=4096");
    }
}
