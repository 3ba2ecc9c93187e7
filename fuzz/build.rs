//! Has the linker put this package's own hooks before libFuzzer's, in the target that counts comparisons.

fn main() {
    for hook in [
        "cmp1", "cmp2", "cmp4", "cmp8", "const_cmp1", "const_cmp2", "const_cmp4", "const_cmp8", "switch",
    ] {
        println!("cargo:rustc-link-arg-bin=fast_lane_linear=-Wl,--wrap=__sanitizer_cov_trace_{hook}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
