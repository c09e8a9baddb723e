#!/usr/bin/env bash
# Installs what the tests need in addition to Rust, or prints what is missing and the command to install it,
# and fails. With --packages it installs the packages only, for root without Rust.
set -euo pipefail
# shellcheck source=scripts/needs.sh
. "$(dirname "$0")/needs.sh"

need cc "gcc libc6-dev" "the build (ring)"
need nginx nginx "the tests against real servers"
need /usr/lib/nginx/modules/ngx_rtmp_module.so libnginx-mod-rtmp "the test of live streams over RTMP"
need apache2 apache2-bin "the tests against real servers"
need caddy caddy "the tests against real servers, including HTTP/3"
need lighttpd lighttpd "the tests against real servers"
need /usr/lib/lighttpd/mod_openssl.so lighttpd-mod-openssl "the tests of lighttpd with TLS"
need nghttpd nghttp2-server "the tests against real servers"
need nghttpx nghttp2-proxy "the tests of reverse proxies"
need haproxy haproxy "the tests of reverse proxies"
need /usr/lib/python3/dist-packages/hypercorn python3-hypercorn "the test of a server that a user describes"
need chromium chromium "the tests of reports in a browser, and of browsers as clients"
need firefox-esr firefox-esr "the tests of browsers as clients"
need npm "nodejs npm" "the tests of videos in a browser, whose players are from npm"
need ffmpeg ffmpeg "the tests of media and its manifests"
need ping iputils-ping "the tests of commands inside a lab"
need h2load nghttp2-client "the tests of external load tools"
need wrk wrk "the tests of external load tools"
need siege siege "the tests of external load tools"
need ab apache2-utils "the tests of external load tools"
need curl curl "the tests of commands inside a lab"
need ip iproute2 "the test of a handover inside a lab"
need tshark tshark "the tests that read captures"
need python3-venv "python3 python3-venv" "the test that runs docs/data.md"
need script bsdutils "the test of what a terminal shows"
need setpriv util-linux "the test that runs as an unprivileged user"

if [ "${1-}" = --packages ]; then
    install_needs "the tests"
    exit
fi
install_needs "the tests"
require_build_tools
for component in fmt clippy; do
    if ! cargo "$component" --version >/dev/null 2>&1; then
        echo "cargo $component is missing; run: rustup component add rustfmt clippy" >&2
        exit 1
    fi
done

# A test runs the commands in docs/data.md. Debian has no pyarrow and no DuckDB, so they come from PyPI into a
# folder next to the build folder. This takes about ten seconds and 350 MB, once.
data_venv=${CARGO_TARGET_DIR:-target}/data-venv
if ! "$data_venv/bin/python" -c 'import duckdb, pandas, pyarrow' 2>/dev/null; then
    python3 -m venv "$data_venv"
    if ! "$data_venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check duckdb pandas pyarrow; then
        echo "pip could not install duckdb, pandas and pyarrow for the test that runs docs/data.md; it needs access to PyPI" >&2
        exit 1
    fi
fi

# The players of the tests of videos in a browser: 50 MB from npm, once.
"$(dirname "$0")/install-players.sh"
