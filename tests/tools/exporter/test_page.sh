#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The exporter's page in a browser, while a NIC of a job is cut: the browser finds the drawings, the events and nothing that it
# complains about; a picture is taken. Arguments: hawser-exporter, ha, the plugin, where the picture is put (or nothing).
set -euo pipefail
exporter=$1 ha=$2 plugin=$3 picture=${4:-}
command -v chromium >/dev/null || { echo "skipped: no chromium"; exit 77; }
tmp=$(mktemp -d)
pids=()
cleanup() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
export HA_NCCL_VERBS=soft SOFTROCE_CONTROL=$tmp/control HA_NCCL_STATUS_DIR=$tmp/pages
mkdir -m 700 "$SOFTROCE_CONTROL"

fail() { echo "$1" >&2; exit 1; }

"$exporter" --dir "$tmp/pages" --metrics 127.0.0.1:0 --interval 1000 --journal none 2>"$tmp/exporter.log" &
pids+=($!)
SLURM_JOB_ID=4711 timeout 800 "$ha" perf sendrecv --plugin "$plugin" --ranks 2 -b 64K -e 64K --duration 800s --compute 5ms >"$tmp/job.log" 2>&1 &
pids+=($!)
for _ in $(seq 600); do grep -q 'serves port' "$tmp/exporter.log" && break; sleep 0.1; done
port=$(sed -n 's/.*serves port //p' "$tmp/exporter.log")
page() { python3 -c 'import sys, urllib.request as u; sys.stdout.write(u.urlopen("http://127.0.0.1:%s/" % sys.argv[1]).read().decode())' "$port"; }
await() {
	for _ in $(seq 1200); do page | grep -q -- "$1" && return; sleep 0.1; done
	fail "the page never has $1"
}
# The job goes on until the page has shown it; each state lasts as long as it takes to see it.
await 'class="arc"'
"$ha" cut soft0 >/dev/null
await 'class="down"'
await '<td>failed_over</td>'
"$ha" heal soft0 >/dev/null
await '<td>recovered</td>'
# Both ranks have failed over at nearly the same time: their events are in the order of time, the newest first.
page | python3 -c 'import re, sys
times = re.findall(r"<tr class=\"\w+\"><td>([\d:.]+)</td>", sys.stdin.read())
sys.exit(len(times) < 10 or times != sorted(times, reverse=True))' || fail "the events are not in the order of time"
await 'class="arc"'

browser() {
	timeout 800 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$tmp/profile" \
		--window-size=1060,1200 --hide-scrollbars "$@" "http://127.0.0.1:$port/still" 2>>"$tmp/browser.log"
}
browser --enable-logging=stderr --dump-dom >"$tmp/dom" || fail "the browser: $(tail -5 "$tmp/browser.log")"
for part in '<svg id="devices"' 'class="arc"' '<svg id="rate"' '<svg id="timeline"' '<circle class="warn"' '<table id="events"' \
	'>failed_over<' '>4711<' 'soft0:1' 'soft1:1'; do
	grep -qF -- "$part" "$tmp/dom" || fail "the browser does not find $part"
done
! grep -q 'CONSOLE' "$tmp/browser.log" || fail "the browser complains: $(grep CONSOLE "$tmp/browser.log")"
browser --screenshot="$tmp/page.png" || fail "no picture: $(tail -5 "$tmp/browser.log")"
python3 - "$tmp/page.png" <<'END' || fail "the picture is no picture"
import struct, sys, zlib
data = open(sys.argv[1], "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n"
width, height = struct.unpack(">II", data[16:24])
assert (width, height) == (1060, 1200), (width, height)
assert len(data) > 20000, "it is empty: %d bytes" % len(data)
END
[ -z "$picture" ] || cp "$tmp/page.png" "$picture"
