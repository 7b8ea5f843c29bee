#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two processes of an unmodified program on softroce: both must succeed, and the client's output must match PATTERN.
# Usage: foreign.sh BUILD_DIR NUMBER PATTERN PROGRAM [ARGUMENT...]
#   NUMBER makes the devices' subnet (127.NUMBER.0.0/24) and the TCP port, so that tests can run side by side.
set -uo pipefail
. "$(dirname "$0")/waiting.sh"
build=$1 number=$2 pattern=$3 program=$4
shift 4
command -v "$program" >/dev/null || { echo "skipped: $program is not installed"; exit 77; }

export SOFTROCE_DEVICES=${SOFTROCE_DEVICES:-127.$number.0.0/24,127.$number.1.0/24}
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL
port=$((20000 + number * 40 + $$ % 30))
case $program in ibv_*) device=(-d soft0 -g 0) ;; *) device=(-d soft0) ;; esac
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null
	rm -rf "$SOFTROCE_CONTROL"
}
trap finish EXIT

both() { # the program's arguments
	timeout 800 "$build/softroce-run" "$program" "${device[@]}" -p $port "$@" >"$SOFTROCE_CONTROL/server.log" 2>&1 &
	server=$!
	listening $port $server
	timeout 800 "$build/softroce-run" "$program" "${device[@]}" -p $port "$@" 127.0.0.1 >"$SOFTROCE_CONTROL/client.log" 2>&1
	client_rc=$?
	wait $server
	server_rc=$?
	server=
}

# perftest measures the processor's clock first, and gives up with these words on a machine that is busy in that moment.
for try in 1 2 3 4 5 6; do
	both "$@"
	cat "$SOFTROCE_CONTROL"/*.log | grep -q "Can't produce a report" || break
	echo "try $try: perftest could not measure the processor's clock"
	port=$((port + 1))
done
grep -qE "$pattern" "$SOFTROCE_CONTROL/client.log"
matched=$?
# Control pages of both are gone with their processes.
left=$(find "$SOFTROCE_CONTROL" -maxdepth 1 -name 'soft*' | wc -l)
if [ $client_rc != 0 ] || [ $server_rc != 0 ] || [ $matched != 0 ] || [ "$left" != 0 ]; then
	echo "$program $*: exit $client_rc (client), $server_rc (server); '$pattern' found: $((!matched)); pages left: $left"
	echo "--- client"; cat "$SOFTROCE_CONTROL/client.log"
	echo "--- server"; cat "$SOFTROCE_CONTROL/server.log"
	exit 1
fi
grep -E "$pattern" "$SOFTROCE_CONTROL/client.log"
