// SPDX-License-Identifier: Apache-2.0
//! Finds libtegula: in the folder TEGULA_LIB_DIR, or by pkg-config.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TEGULA_LIB_DIR");
    if let Ok(folder) = env::var("TEGULA_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    } else {
        let found = Command::new("pkg-config").args(["--libs-only-L", "tegula"]).output();
        match found {
            Ok(output) if output.status.success() => {
                for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
                    println!("cargo:rustc-link-search=native={}", word.trim_start_matches("-L"));
                }
            }
            _ => panic!("libtegula was not found: install it with pkg-config, or set TEGULA_LIB_DIR"),
        }
    }
    println!("cargo:rustc-link-lib=dylib=tegula");
}
