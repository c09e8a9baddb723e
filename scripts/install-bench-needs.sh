#!/usr/bin/env bash
# Installs the servers and generators that `make bench-peers` and `make bench-load` need beside h123: with apt where this is root on
# Debian or Ubuntu, else it says what is missing, with the command that gets it, and fails.
set -euo pipefail

# A command that has to be there, and the Debian package that brings it.
needs=(
    "nginx|nginx"
    "nghttpd|nghttp2-server"
    "wrk|wrk"
    "h2load|nghttp2-client"
    "siege|siege"
    "ab|apache2-utils"
    "strace|strace"
)

has() {
    command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]
}

packages=()
for need in "${needs[@]}"; do
    IFS='|' read -r command package <<<"$need"
    if ! has "$command"; then
        packages+=("$package")
    fi
done
if [ ${#packages[@]} -eq 0 ]; then
    exit 0
fi

echo "missing for the benchmark: ${packages[*]}" >&2
if ! command -v apt-get >/dev/null; then
    echo "Install them with your system's package manager (Debian calls them: ${packages[*]})." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Run: sudo apt-get update && sudo apt-get install --no-install-recommends ${packages[*]}" >&2
    exit 1
fi

# A machine that measures wants the programs, not a web server on port 80: packages may start nothing meanwhile.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends "${packages[@]}"

for need in "${needs[@]}"; do
    IFS='|' read -r command package <<<"$need"
    if ! has "$command"; then
        echo "$package was installed, but there is still no \`$command\`" >&2
        exit 1
    fi
done
