#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A server and a client that find each other through librdmacm, unmodified, on softroce: both must succeed, and the
# client's output must match PATTERN. Usage: cm.sh BUILD_DIR NUMBER PATTERN SERVER_WORDS CLIENT_WORDS
#   NUMBER makes the devices' subnet (127.NUMBER.0.0/24); ADDRESS in CLIENT_WORDS is the server's address in it.
#   With BESIDE=1 somebody else has the subnet's first address.
set -uo pipefail
build=$1 number=$2 pattern=$3
read -ra server_words <<<"$4"
words=$5
command -v "${server_words[0]}" >/dev/null || { echo "skipped: ${server_words[0]} is not installed"; exit 77; }

export SOFTROCE_DEVICES=127.$number.0.0/24
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL
log=$SOFTROCE_CONTROL
server= neighbour=
finish() {
	for pid in $server $neighbour; do kill "$pid" 2>/dev/null; done
	rm -rf "$SOFTROCE_CONTROL" "$SOFTROCE_CONTROL.beside"
}
trap finish EXIT

# address_of CONTROL PID: the device's that PID has open, once it has; empty: it has ended.
address_of() {
	local address=
	for _ in $(seq 1200); do
		address=$(SOFTROCE_CONTROL=$1 "$build/ha" soft 2>/dev/null | sed -n 's/^soft0@\([0-9.]*\) .*/\1/p')
		[ -z "$address" ] && kill -0 "$2" 2>/dev/null || break
		sleep 0.05
	done
	echo "$address"
}

if [ "${BESIDE:-0}" = 1 ]; then
	mkdir "$SOFTROCE_CONTROL.beside"
	SOFTROCE_CONTROL=$SOFTROCE_CONTROL.beside "$build/softroce-run" ibv_asyncwatch -d soft0 >/dev/null 2>&1 &
	neighbour=$!
	first=$(address_of "$SOFTROCE_CONTROL.beside" $neighbour)
	[ "$first" = "127.$number.0.1" ] || { echo "the first program in the subnet has the address '$first'"; exit 1; }
fi

both() { # SECONDS between the server's address and the client
	timeout 800 "$build/softroce-run" "${server_words[@]}" >"$log/server.log" 2>&1 &
	server=$!
	# Its device has the address, then it listens.
	read -ra client_words <<<"${words//ADDRESS/$(address_of "$SOFTROCE_CONTROL" $server)}"
	sleep "$1"
	timeout 800 "$build/softroce-run" "${client_words[@]}" >"$log/client.log" 2>&1
	client_rc=$?
	[ $client_rc = 0 ] || kill $server 2>/dev/null
	wait $server
	server_rc=$?
	server=
	[ $client_rc = 0 ] && [ $server_rc = 0 ]
}

# On a busy machine a server may not listen yet, which each program says in its own words (udaddy gets UNREACHABLE with the status
# of a refusal, perftest event 8), and perftest may not find out how fast the processor's clock is. One of rping's two threads closes the
# event channel at the end; the other one, if it comes back to it later, finds it closed, as it would over the kernel's.
again="REJECTED|rdma_get_cm_event: Bad file descriptor|UNREACHABLE[,;] error: 1\b|CM event bl blka 8|rpoll: Success|refused|Connection reset|Can't produce a report"
for pause in 0.3 0.6 1.2 2.4 4.8 9.6; do
	both $pause && break
	cat "$log"/*.log | grep -qE "$again" || break
	echo "again: $(cat "$log"/*.log | grep -E "$again" | head -1)"
done
if [ $client_rc != 0 ] || [ $server_rc != 0 ] || ! cat "$log/client.log" | grep -qE "$pattern"; then
	echo "${client_words[*]}: exit $client_rc (client), $server_rc (server); expected '$pattern'"
	echo "--- client"; cat "$log/client.log"
	echo "--- server"; cat "$log/server.log"
	exit 1
fi
grep -E "$pattern" "$log/client.log" | tail -2
