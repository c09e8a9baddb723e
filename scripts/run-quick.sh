#!/usr/bin/env bash
# Builds the tool, runs the study `quick` and prints the path of its report.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/needs.sh
. scripts/needs.sh
require_build_tools

cargo build --profile quick --locked --package h123
out="results/quick-$(date -u +%Y%m%dT%H%M%SZ)"
status=0
cargo run --profile quick --locked --quiet --package h123 -- run quick --out "$out" || status=$?
case $status in
    0) ;;
    3) echo "Done (exit status 3): at least one cell failed or is invalid; the report says which and why." ;;
    *) exit "$status" ;;
esac
echo "Report: $PWD/$out/report.html"
