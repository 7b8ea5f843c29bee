#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# libfabric's verbs provider between two network namespaces: connected endpoints by librdmacm (msg), messages over them
# (ofi_rxm), datagrams. The provider takes only devices that an interface's address belongs to, hence no loopback subnet.
# Every byte is checked (-c). Usage: fabric.sh BUILD_DIR
set -uo pipefail
build=$1
here=$(dirname "$0")
command -v fi_pingpong >/dev/null || { echo "skipped: fi_pingpong is not installed"; exit 77; }
. "$here/veth.sh"
. "$here/waiting.sh"

pingpong() { # last-line-pattern argument...
	local pattern=$1 server
	shift
	in_a timeout 800 fi_pingpong "$@" -c >"$log" 2>&1 &
	server=$!
	listening 47592 $server "$inside" "$a"
	in_b timeout 800 fi_pingpong "$@" -c 10.99.0.1 >"$log.client" 2>&1 || { cat "$log.client"; fail "fi_pingpong $*: client"; }
	wait $server || fail "fi_pingpong $*: server"
	grep -qE "$pattern" "$log.client" || { cat "$log.client"; fail "fi_pingpong $*: no line '$pattern'"; }
}

pingpong '^1m +10 ' -e msg -p verbs
pingpong '^1m +10 ' -e rdm -p 'verbs;ofi_rxm'
pingpong '^1k +10 ' -e dgram -p verbs
echo "fi_pingpong: connected endpoints, messages over them, datagrams"
