#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hawser-exporter beside a job whose NIC is cut: what it counts outlives the job and itself; the formats are what Prometheus reads;
# the journal gets entries with fields. Arguments: hawser-exporter, ha, the plugin.
set -euo pipefail
. "$(dirname "$0")/../interrupt.sh"
exporter=$1 ha=$2 plugin=$3
tmp=$(mktemp -d)
pids=()
cleanup() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$tmp/control HA_NCCL_STATUS_DIR=$tmp/pages-0
mkdir -m 700 "$SOFTROCE_CONTROL"

fail() { echo "$1" >&2; tail -5 "$tmp"/*.log >&2 2>/dev/null || true; exit 1; }

# The journal's socket, into a file: an entry per line, its fields with tabs between.
python3 - "$tmp/journal.sock" "$tmp/journal" <<'END' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
with open(sys.argv[2], "a") as out:
    while True:
        print(s.recv(65536).decode().replace("\n", "\t"), file=out, flush=True)
END
pids+=($!)
for _ in $(seq 600); do [ -S "$tmp/journal.sock" ] && break; sleep 0.1; done

start() {
	: >"$tmp/exporter.log" # what the one before it said is not this one's
	"$exporter" --dir "$tmp/pages-%u" --metrics 127.0.0.1:0 --interval 50 --state "$tmp/state" --textfile "$tmp/out.prom" \
		--journal "$tmp/journal.sock" 2>"$tmp/exporter.log" &
	running=$!
	pids+=("$running")
	for _ in $(seq 600); do grep -q 'serves port' "$tmp/exporter.log" && break; sleep 0.1; done
	port=$(sed -n 's/.*serves port //p' "$tmp/exporter.log")
	[ -n "$port" ] || fail "it serves nothing"
}

metrics() {
	python3 -c 'import sys, urllib.request as u; sys.stdout.write(u.urlopen("http://127.0.0.1:%s%s" % tuple(sys.argv[1:3])).read().decode())' \
		"$port" "${1:-/metrics}"
}

# sum PATTERN: of all series that begin so
sum() {
	metrics | awk -v p="$1" 'index($0, p) == 1 { s += $NF } END { print s + 0 }'
}

# await EXPRESSION-OF-SUM PATTERN: minutes at most
await() {
	for _ in $(seq 1200); do
		[ "$(sum "$2")" "$1" "$3" ] && return
		sleep 0.1
	done
	metrics >&2
	fail "not so after two minutes: $2 $1 $3"
}

start
env --default-signal=INT "$ha" perf sendrecv --plugin "$plugin" --ranks 2 -b 64K -e 64K --duration 600s --compute 5ms --at 2s "'$ha' cut soft0" \
	--at 4s "'$ha' heal soft0" >"$tmp/job.log" 2>&1 &
job=$!
pids+=("$job")
await -ge 'hawser_plugin_connections{' 1
await -ge 'hawser_plugin_messages_total{direction="send"}' 1
await -ge 'hawser_plugin_failovers_total{' 1
await -ge 'hawser_plugin_events_total{event="recovered"' 1
interrupt "$job" 2
wait "$job" || fail "the job: $(tail -3 "$tmp/job.log")"
# the job is gone, with its pages; what it counted is not
await -eq 'hawser_plugin_connections{' 0
[ -z "$(ls "$tmp/pages-0")" ] || fail "pages are left: $(ls "$tmp/pages-0")"
failovers=$(sum 'hawser_plugin_failovers_total{')
[ "$failovers" -ge 1 ] || fail "no failover was counted"
[ "$(sum 'hawser_plugin_events_total{event="failed_over"')" = "$failovers" ] || fail "events and failovers differ"
metrics | grep -q '^hawser_plugin_failovers_total{device="soft0:1",cause="port_down"} ' ||
	fail "not of soft0:1, or with another cause: $(metrics | grep failovers)"
[ "$(sum 'hawser_plugin_events_missed_total')" = 0 ] || fail "events were missed"
[ "$(sum 'hawser_plugin_stall_seconds_total{device="soft0:1"}')" != 0 ] || fail "no stall: $(metrics | grep stall)"
metrics | grep -q '^hawser_plugin_last_failover_timestamp_seconds{device="soft0:1"} 1[0-9]\{9\}$' || fail "no time of the last one"
for _ in $(seq 600); do [ "$(grep -c 'HAWSER_EVENT=failed_over' "$tmp/journal")" -ge "$failovers" ] && break; sleep 0.1; done
[ "$(grep -c 'HAWSER_EVENT=failed_over' "$tmp/journal")" = "$failovers" ] ||
	fail "the journal has other failovers than $failovers: $(grep -c HAWSER_EVENT=failed_over "$tmp/journal")"
grep -q $'HAWSER_EVENT=failed_over\tHAWSER_CAUSE=[a-z_]*\tHAWSER_DEVICE=soft0:1\t' "$tmp/journal" || fail "no entry of soft0:1"
! grep -q 'HAWSER_EVENT=connected' "$tmp/journal" || fail "the journal has what nobody acts on"

# the page: whole, and what another program wrote is no markup
metrics / >"$tmp/page.html"
grep -q '<svg id="timeline"' "$tmp/page.html" && grep -q '</html>' "$tmp/page.html" || fail "the page"
python3 - "$tmp/page.html" <<'END' || fail "the page is not well formed"
import html.parser, sys
void = {"meta", "link", "br", "path", "rect", "circle", "polyline", "th", "td", "tr"}
class Check(html.parser.HTMLParser):
    stack = []
    def handle_starttag(self, tag, attributes):
        if tag not in void: self.stack.append(tag)
    def handle_endtag(self, tag):
        if tag not in void and self.stack.pop() != tag: sys.exit(1)
check = Check(); check.feed(open(sys.argv[1]).read())
sys.exit(bool(check.stack))
END

# OpenMetrics: each family once, HELP and TYPE before its samples, counters end with _total, the end is marked
metrics | python3 -c '
import re, sys
lines = sys.stdin.read().split("\n")
assert lines[-2:] == ["# EOF", ""], lines[-2:]
kind, order = {}, []
for line in lines[:-2]:
    m = re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line)
    if m:
        assert m[1] not in kind, m[1]
        kind[m[1]] = m[2]; order.append(m[1])
    elif not line.startswith("# HELP "):
        m = re.fullmatch(r"(\w+)(\{(?:\w+=\"(?:[^\"\\]|\\.)*\",?)*\})? [0-9.e+-]+", line)
        assert m, line
        family = order[-1]
        assert m[1] == family + ("_total" if kind[family] == "counter" else ""), line
' || fail "no OpenMetrics"
if command -v promtool >/dev/null; then
	promtool check metrics <"$tmp/out.prom" || fail "promtool finds fault with the textfile"
fi

# another exporter goes on: nothing is lost, nothing counted twice
kill "$running"; wait "$running" 2>/dev/null || true
start
await -eq 'hawser_plugin_failovers_total{' "$failovers"

# a process that is killed: what it counted stays, though its page does, too
before=$(sum 'hawser_plugin_processes_seen_total')
timeout 800 "$ha" perf pingpong -b 8 -e 8 -n 100000000 --ranks 2 --plugin "$plugin" >"$tmp/job.log" 2>&1 &
job=$!
pids+=("$job")
await -eq 'hawser_plugin_connections{' 4
[ "$(sum 'hawser_plugin_processes_seen_total')" = $((before + 2)) ] || fail "not two more processes"
kill "$running"; wait "$running" 2>/dev/null || true
start # in the middle of a job
await -eq 'hawser_plugin_connections{' 4
connected=$(sum 'hawser_plugin_events_total{event="connected"')
kill -9 $(ls "$tmp/pages-0")
wait "$job" 2>/dev/null || true
await -eq 'hawser_plugin_connections{' 0
[ "$(sum 'hawser_plugin_processes_seen_total')" = $((before + 2)) ] || fail "processes are counted again"
[ "$(sum 'hawser_plugin_events_total{event="connected"')" = "$connected" ] || fail "events are counted again"

# what is no page
head -c 100 /dev/urandom >"$tmp/pages-0/1000001"
await -eq hawser_exporter_pages_refused 1
rm "$tmp/pages-0/1000001"
chmod 777 "$tmp/pages-0"
"$exporter" --dir "$tmp/pages-%u" --once --textfile "$tmp/none.prom" --journal none || fail "--once"
! grep -q '^hawser_plugin_connections{' "$tmp/none.prom" || fail "a folder for everybody was read"
# a file that cannot be written is said at the start; later, once
for option in --textfile --state; do
	rc=0
	timeout 60 "$exporter" --dir "$tmp/pages-%u" --metrics none --journal none $option="$tmp/none/x.prom" >"$tmp/said" 2>&1 || rc=$?
	[ "$rc" = 1 ] && [ "$(wc -l <"$tmp/said")" = 1 ] || fail "$option into nowhere: $rc, $(cat "$tmp/said")"
	grep -q -- "$option $tmp/none/x.prom: $tmp/none: No such file or directory; name a file" "$tmp/said" || fail "no advice: $(cat "$tmp/said")"
done
mkdir "$tmp/gone"
"$exporter" --dir "$tmp/pages-%u" --metrics none --journal none --interval 10 --textfile "$tmp/gone/x.prom" 2>"$tmp/said" &
running=$!
pids+=("$running")
for _ in $(seq 600); do [ -s "$tmp/gone/x.prom" ] && break; sleep 0.1; done
mv "$tmp/gone" "$tmp/away"
for _ in $(seq 600); do [ -s "$tmp/said" ] && break; sleep 0.1; done
sleep 0.5
mv "$tmp/away" "$tmp/gone"
for _ in $(seq 600); do grep -q 'written again' "$tmp/said" && break; sleep 0.1; done
kill "$running"; wait "$running" 2>/dev/null || true
[ "$(wc -l <"$tmp/said")" = 2 ] && grep -q 'No such file or directory; it is tried again' "$tmp/said" || fail "not once: $(cat "$tmp/said")"
rc=0; "$exporter" nonsense 2>/dev/null || rc=$?
[ "$rc" = 2 ] || fail "a word too many: $rc"
