#!/usr/bin/env bash
# Checks licences, banned crates and sources of every dependency against deny.toml, and the pinned compiler.
#
# It runs cargo-deny if that is installed. Otherwise it compares cargo's dependency tree with the same
# lists, because building cargo-deny takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
if [ "${pinned%.*}" != "$least" ]; then
    echo "rust-toolchain.toml pins $pinned, but rust-version in Cargo.toml is $least; change both" >&2
    exit 1
fi

if command -v cargo-deny >/dev/null; then
    exec cargo deny --locked check --hide-inclusion-graph bans licenses sources
fi

section() { # the lines of one `[section]` of deny.toml
    awk -v wanted="[$1]" '/^\[/ { inside = ($0 == wanted) } inside' deny.toml
}
allowed=$(section licenses | awk '/^allow = \[/ { inside = 1; next } /^\]/ { inside = 0 } inside' | tr -d ' ",')
banned=$(section bans | sed -n 's/^ *{ crate = "\([^"]*\)".*/\1/p')
faults=0

if [ -z "$allowed" ] || [ -z "$banned" ]; then
    echo "deny.toml: a list of licences or of banned crates is missing; add both" >&2
    exit 1
fi

# Licences. `OR` needs one allowed side, `AND` needs all; "/" is an old spelling of OR. Brackets only group
# an OR.
tree=$(cargo tree --workspace --locked --edges normal,build,dev --prefix none --format '{p}|{l}')
if ! sed 's/ (\*)$//' <<<"$tree" | sort -u | awk -F'|' -v allowed="$allowed" '
    BEGIN { count = split(allowed, names, "\n"); for (i = 1; i <= count; i++) known[names[i]] = 1 }
    function one_of(text,    sides, n, i) {
        gsub(/[()]/, "", text)
        n = split(text, sides, / OR /)
        for (i = 1; i <= n; i++) { gsub(/^ +| +$/, "", sides[i]); if (sides[i] in known) return 1 }
        return 0
    }
    $0 != "" {
        licence = $2
        gsub(/ *\/ */, " OR ", licence)
        n = split(licence, parts, / AND /)
        for (i = 1; i <= n; i++) if (!one_of(parts[i])) {
            printf "%s: deny.toml does not allow the licence `%s`; use another crate, or add the licence\n", $1, $2
            bad = 1
            break
        }
    }
    END { exit bad }' >&2; then
    faults=1
fi

for crate in $banned; do
    if grep -q "^$crate v" <<<"$tree"; then
        echo "deny.toml bans the crate \`$crate\`; find its dependents with: cargo tree -i $crate" >&2
        faults=1
    fi
done

external=$(grep '^source = ' Cargo.lock | grep -v '"registry+' || true)
if [ -n "$external" ]; then
    echo "Cargo.lock: dependency from a source other than crates.io: $external; use a release on crates.io" >&2
    faults=1
fi

if grep -nE '^[a-z0-9_-]+ *= *("\*"|\{[^}]*version *= *"\*")' Cargo.toml crates/*/Cargo.toml >&2; then
    echo "a dependency has the version \`*\`; write a version number" >&2
    faults=1
fi

if [ "$faults" -eq 0 ]; then
    echo "dependencies: licences, bans and sources comply with deny.toml; the compiler is pinned"
fi
exit "$faults"
