#!/usr/bin/env bash
# Installs the servers and load generators for `make bench-peers` and `make bench-load`, or prints what is
# missing.
set -euo pipefail
# shellcheck source=scripts/needs.sh
. "$(dirname "$0")/needs.sh"

need nginx nginx "the server of most rows"
need nghttpd nghttp2-server "the server that shows the limit of HTTP/2 generators"
need wrk wrk "a tool to compare with"
need h2load nghttp2-client "a tool to compare with"
need siege siege "a tool to compare with"
need ab apache2-utils "a tool to compare with"
need strace strace "the count of system calls"
install_needs "the benchmarks"
