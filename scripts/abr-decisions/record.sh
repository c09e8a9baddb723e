#!/usr/bin/env bash
# Records throughput traces over emulated networks and writes recorded.csv: about 5 minutes, needs h123 in PATH and Python with
# pyarrow. Other traces need other tables: run `make abr-decisions` afterwards.
set -euo pipefail
cd "$(dirname "$0")"

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
h123 run record.toml --quiet --out "$folder/result"
python3 condense.py "$folder/result" >recorded.csv
