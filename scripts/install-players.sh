#!/usr/bin/env bash
# Installs hls.js and dash.js for the tests, where `h123 players install` puts them: the same pinned versions, fetched
# and checked by npm. Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")/abr-decisions"

players=${H123_PLAYERS:-${XDG_CACHE_HOME:-$HOME/.cache}/h123/players}
work=
trap 'rm -rf "$work"' EXIT
for library in hls.js:dist/hls.min.js dashjs:dist/modern/umd/dash.all.min.js; do
    name=${library%%:*}
    # The lock file has one line `"version"` below that of the package.
    version=$(sed -n "/\"node_modules\/$name\": {/,/}/s/.*\"version\": \"\(.*\)\".*/\1/p" package-lock.json)
    script=$players/$name-$version.min.js
    if [ -s "$script" ]; then
        continue
    fi
    if [ -z "$work" ]; then
        work=$(mktemp -d)
        cp package.json package-lock.json "$work"
        if ! (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent); then
            echo "npm could not fetch hls.js and dash.js for the tests of videos in a browser; it needs the npm registry" >&2
            exit 1
        fi
    fi
    mkdir -p "$players"
    cp "$work/node_modules/$name/${library#*:}" "$script"
done
