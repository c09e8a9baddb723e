#!/usr/bin/env bash
# Checks that the tables of decisions are what the real players decide. It needs Node.js 20 and the npm registry;
# without them it says so and checks nothing, because the tables themselves are tested by `cargo test`.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v npm >/dev/null || [ "$(node --version | sed 's/v\([0-9]*\).*/\1/')" -lt 20 ]; then
    echo "abr-decisions: not checked; install Node.js 20 or newer with npm" >&2
    exit 0
fi
if ! npm ci --silent >&2; then
    echo "abr-decisions: not checked; the npm registry cannot be reached" >&2
    exit 0
fi
node make.mjs --check
echo "abr-decisions: the tables are current"
