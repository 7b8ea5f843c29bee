#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two processes of a library above verbs (UCX, libfabric) on softroce: both must succeed, and the client's output must
# match PATTERN. Usage: upper.sh BUILD_DIR NUMBER PATTERN SERVER_OPTION CLIENT_OPTION PROGRAM [ARGUMENT...]
#   NUMBER makes the devices' subnet (127.NUMBER.0.0/24) and the TCP port; SERVER_OPTION and CLIENT_OPTION precede the port.
set -uo pipefail
. "$(dirname "$0")/waiting.sh"
build=$1 number=$2 pattern=$3 server_option=$4 client_option=$5 program=$6
shift 6
command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }

scratch=$(mktemp -d)
export SOFTROCE_DEVICES=127.$number.0.0/24 SOFTROCE_CONTROL=$scratch
export UCX_NET_DEVICES=soft0:1 UCX_TLS=${UCX_TLS:-rc_verbs,ud_verbs} # nothing else will do
port=$((20000 + number * 40 + $$ % 30))
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	rm -rf "$scratch"
}
trap finish EXIT

timeout 800 "$build/softroce-run" "$program" "$@" "$server_option" $port >"$scratch/server.log" 2>&1 &
server=$!
listening $port $server
timeout 800 "$build/softroce-run" "$program" "$@" "$client_option" $port 127.0.0.1 >"$scratch/client.log" 2>&1
client_rc=$?
wait $server
server_rc=$?
server=
if [ $client_rc != 0 ] || [ $server_rc != 0 ] || ! grep -qE "$pattern" "$scratch/client.log"; then
	echo "$program $*: exit $client_rc (client), $server_rc (server); expected '$pattern'"
	echo "--- client"; cat "$scratch/client.log"
	echo "--- server"; cat "$scratch/server.log"
	exit 1
fi
grep -E "$pattern" "$scratch/client.log" | tail -3
