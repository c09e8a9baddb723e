#!/usr/bin/env bash
# Installs what the tests need beyond Rust: with apt where this is root on Debian or Ubuntu, else it says what is
# missing, with the command that gets it, and fails.
set -euo pipefail

# A command that has to be there, the Debian package that brings it, and what needs it.
needs=(
    "cc|gcc libc6-dev|the build (ring)"
    "nginx|nginx|the tests against a real server"
    "chromium|chromium|the test that opens the report in a browser"
    "ping|iputils-ping|the tests of commands inside a lab"
    "curl|curl|the tests of commands inside a lab"
    "ip|iproute2|the test of a handover inside a lab"
    "tshark|tshark|the tests that read captures"
    "setpriv|util-linux|the test that runs as an unprivileged user"
)

has() {
    case $1 in
        nginx) command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] ;;
        chromium) command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

packages=()
reasons=()
for need in "${needs[@]}"; do
    IFS='|' read -r command package reason <<<"$need"
    if ! has "$command"; then
        read -ra more <<<"$package"
        packages+=("${more[@]}")
        reasons+=("  $command: $reason")
    fi
done

if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install Rust 1.95 or later (rustup)" >&2
    exit 1
fi
for component in fmt clippy; do
    if ! cargo "$component" --version >/dev/null 2>&1; then
        echo "cargo $component is missing: rustup component add rustfmt clippy" >&2
        exit 1
    fi
done

if [ ${#packages[@]} -eq 0 ]; then
    exit 0
fi

echo "missing for the tests:" >&2
printf '%s\n' "${reasons[@]}" >&2

if ! command -v apt-get >/dev/null; then
    echo "Install them with your system's package manager (Debian calls them: ${packages[*]})." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Run: sudo apt-get update && sudo apt-get install --no-install-recommends ${packages[*]}" >&2
    exit 1
fi

# A test machine wants the nginx program, not a web server on port 80: packages may start nothing meanwhile.
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
    IFS='|' read -r command package reason <<<"$need"
    if ! has "$command"; then
        echo "$package was installed, but there is still no \`$command\`" >&2
        exit 1
    fi
done
