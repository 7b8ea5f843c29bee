#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hawser-exporter beside ranks in a pid namespace of their own, as a pod's, whose process numbers mean others here: their job's name is
# read from the right process; killed by SIGKILL, they are no longer counted, and `ha status` and `ha top` say the same. Root.
# Arguments: hawser-exporter, ha, the plugin.
set -euo pipefail
exporter=$1 ha=$2 plugin=$3
unshare --pid --fork --mount-proc true 2>/dev/null || { echo "skipped: no right to make a pid namespace"; exit 77; }
tmp=$(mktemp -d)
pids=()
cleanup() {
	[ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$tmp/control HA_NCCL_STATUS_DIR=$tmp/pages-0
mkdir -m 700 "$SOFTROCE_CONTROL"

fail() { echo "$1" >&2; tail -n 5 "$tmp"/*.log >&2 2>/dev/null || true; exit 1; }
sum() { awk -v p="$1" 'index($0, p) == 1 { s += $NF } END { print s + 0 }' "$tmp/out.prom" 2>/dev/null || true; }
# await PATTERN NUMBER: a minute at most; only a defect reaches it
await() {
	for _ in $(seq 600); do
		[ "$(sum "$1")" != "$2" ] || return 0
		sleep 0.1
	done
	fail "not $2 after a minute: $1 $(grep -F "${1%%{*}" "$tmp/out.prom")"
}

"$exporter" --dir "$tmp/pages-%u" --metrics none --interval 50 --textfile "$tmp/out.prom" --journal none 2>"$tmp/exporter.log" &
pids+=($!)
SLURM_JOB_ID=4711 unshare --pid --fork --kill-child --mount-proc "$ha" perf pingpong --ranks 2 -b 8 -e 8 -n 100000000 \
	--plugin "$plugin" >"$tmp/job.log" 2>&1 &
job=$!
pids+=("$job")
await 'hawser_plugin_processes{job="4711"}' 2
await 'hawser_plugin_connections{job="4711"}' 4
"$ha" status >"$tmp/status.log"
[ "$(grep -c ', in another container' "$tmp/status.log")" = 2 ] || fail "ha status: a container's processes"
"$ha" top -b -n 1 >"$tmp/top.log"
grep -q 'processes: 2, 0 ended' "$tmp/top.log" || fail "ha top: a container's processes"

# all of the container at once, as a pod that is out of memory: nobody closes anything
kill -9 "$(cat "/proc/$job/task/$job/children")"
wait "$job" 2>/dev/null || true
[ "$(ls "$tmp/pages-0" | wc -l)" = 2 ] || fail "the ranks have taken their pages away"
await 'hawser_plugin_processes{' 0
await 'hawser_plugin_connections{' 0
if [ "$(stat -Lc %i /proc/self/ns/pid)" = 4026531836 ]; then # the host's: who is not seen has ended
	"$ha" status >"$tmp/status.log"
	[ "$(grep -c ', ENDED without closing' "$tmp/status.log")" = 2 ] || fail "ha status: processes that were killed"
	"$ha" top -b -n 1 >"$tmp/top.log"
	grep -q 'processes: 0, 2 ended' "$tmp/top.log" || fail "ha top: processes that were killed"
fi
[ "$(sum hawser_plugin_processes_seen_total)" = 2 ] || fail "not two processes were seen"
unprotected=$(sum hawser_plugin_unprotected_seconds_total)
sleep 0.5
[ "$(sum hawser_plugin_unprotected_seconds_total)" = "$unprotected" ] || fail "time without a standby goes on"
