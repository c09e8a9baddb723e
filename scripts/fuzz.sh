#!/usr/bin/env bash
# Searches the decoders of external bytes for faults, one target after the other, at low priority.
#
#   scripts/fuzz.sh [TARGET …]      all targets by default
#
# FUZZ_SECONDS is the time of each target (600 by default). Inputs that find a fault are in fuzz/artifacts/, all
# others that reach new code in fuzz/corpus/, where the next search begins.
set -euo pipefail
cd "$(dirname "$0")/.."

# Sanitizers are unstable options of the compiler. Without a nightly toolchain, the pinned one accepts them, too.
if cargo +nightly --version >/dev/null 2>&1; then
    fuzz=(cargo +nightly fuzz)
else
    fuzz=(cargo fuzz)
    export RUSTC_BOOTSTRAP=1
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "fuzzing needs cargo-fuzz; run: cargo install --locked cargo-fuzz" >&2
    exit 1
fi

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <("${fuzz[@]}" list)
fi
failed=()
for target in "${targets[@]}"; do
    echo "$target: ${FUZZ_SECONDS:-600} s"
    if ! nice "${fuzz[@]}" run "$target" -- -max_total_time="${FUZZ_SECONDS:-600}" -timeout=20 -verbosity=0 -print_final_stats=1; then
        failed+=("$target")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "found faults: ${failed[*]}; mend them and add each input as a test next to its decoder" >&2
    exit 1
fi
