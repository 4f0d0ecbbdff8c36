//! Compiles the C around DPDK's inline functions and finds the libraries, if they are to be linked.

fn main() {
    println!("cargo:rerun-if-changed=src/sys/shim.c");
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "link")]
    link::link();
}

#[cfg(feature = "link")]
mod link {
    /// The first that has `rte_dev_name`, and the oldest that it was tested with.
    const OLDEST: &str = "22.11";

    /// The libraries that are called, and no more: `libdpdk` names all libraries that there are.
    /// Drivers are loaded at run time.
    const LIBRARIES: [&str; 4] = ["rte_eal", "rte_ethdev", "rte_mbuf", "rte_mempool"];

    #[expect(clippy::disallowed_methods, reason = "cargo tells a build script so")]
    pub(super) fn link() {
        let mut found = pkg_config::Config::new();
        found.atleast_version(OLDEST).cargo_metadata(false);
        let found = found.probe("libdpdk").unwrap_or_else(|e| {
            panic!(
                "DPDK {OLDEST} or later is needed to build with it; on Debian and Ubuntu: \
                 apt-get install libdpdk-dev\n\n{e}"
            )
        });
        let mut shim = cc::Build::new();
        shim.file("src/sys/shim.c");
        // The other flags of `pkg-config --cflags`: the sizes that the libraries were built with,
        // and the processor that their inline functions take at least.
        shim.flag("-include").flag("rte_config.h");
        match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
            Ok("x86_64") => drop(shim.flag_if_supported("-march=corei7")),
            Ok("aarch64") => drop(shim.flag_if_supported("-march=armv8-a+crc")),
            _ => {}
        }
        // Their headers are not ours to mend.
        for path in &found.include_paths {
            shim.flag("-isystem").flag(path.to_str().expect("a path in UTF-8"));
        }
        shim.std("gnu11").extra_warnings(true).flag("-Wno-unused-parameter").compile("weir_dpdk");
        for path in &found.link_paths {
            println!("cargo:rustc-link-search=native={}", path.display());
        }
        for library in LIBRARIES {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
