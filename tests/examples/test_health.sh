#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/health/verdict beside the exporter and a job whose NIC is cut: unaffected, unprotected, survived, lost, unknown; the
# recording rules by promtool.
. "$(dirname "$0")/lib.sh"
verdict=$root/examples/health/verdict
export HA_NCCL_STATUS_DIR=$work/pages-0
is() { # WORD STATUS ARGUMENT...
	local word=$1 want=$2 got status=0
	shift 2
	got=$("$verdict" "$@") || status=$?
	[ "$got $status" = "$word $want" ] || fail "verdict: '$got' with $status, not '$word' with $want"
}
is unknown 3 http://127.0.0.1:1/metrics

prom=$work/hawser.prom
"$build/hawser-exporter" --dir "$work/pages-%u" --metrics none --interval 50 --textfile "$prom" --journal none 2>"$work/exporter.log" &
pids+=($!)
job=
await() { # WORD: minutes at most
	for _ in $(seq 1200); do
		[ "$("$verdict" "$prom" || true)" != "$1" ] || return 0
		[ -z "$job" ] || kill -0 "$job" 2>/dev/null || fail "the job has ended"
		sleep 0.1
	done
	fail "no verdict '$1' after two minutes: $(cat "$prom")"
}
await unaffected
"$HA" perf sendrecv --plugin "$build/libnccl-net-ha.so" --ranks 2 -b 64K -e 64K --duration 600s --compute 5ms \
	--at 1s "'$HA' cut soft0" >"$work/out" 2>&1 &
job=$!
pids+=("$job")
await unprotected # the first word after the failure may be "survived": the pages are up to a second old
"$HA" heal soft0 >/dev/null
await survived
is survived 0 "$prom"
kill "$job"
wait "$job" 2>/dev/null || true

{ cat "$prom"; echo 'hawser_plugin_events_total{event="lost",cause="no_rail"} 1'; } >"$work/lost.prom"
is lost 2 --state "$work/state" "$work/lost.prom"
is survived 0 --state "$work/state" "$work/lost.prom" # no further one since
awk '/^hawser_plugin_last_failover_timestamp_seconds{/ && $NF > 700 { $NF -= 700 } { print }' "$work/lost.prom" >"$work/old.prom"
is unaffected 0 --state "$work/state" "$work/old.prom"
is survived 0 --since 900 --state "$work/state" "$work/old.prom"
if command -v promtool >/dev/null; then
	(cd "$root/examples/health" && promtool test rules rules_test.yml) >"$work/out" 2>&1 || fail "the rules"
fi
echo "each verdict as it should be"
