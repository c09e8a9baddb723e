#!/usr/bin/env bash
# Installs the servers and load generators for `make bench-peers` and `make bench-load`, or prints what is
# missing.
set -euo pipefail
# shellcheck source=scripts/needs.sh
. "$(dirname "$0")/needs.sh"

need nginx nginx "the server of most rows"
need nghttpd nghttp2-server "the server that shows an HTTP/2 generator's ceiling"
need wrk wrk "a peer"
need h2load nghttp2-client "a peer"
need siege siege "a peer"
need ab apache2-utils "a peer"
need strace strace "the count of system calls"
install_needs "the benchmark"
