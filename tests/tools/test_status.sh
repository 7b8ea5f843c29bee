#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ha status over living processes, over nothing, and over pages that are none. Arguments: ha, the plugin.
. "$(dirname "$0")/lib.sh"

export HA_NCCL_STATUS_DIR=$TMP/pages HA_NCCL_VERBS=soft HA_NCCL_EVENTS=$TMP/events.%p.%%
# No failover: to a busy machine a software NIC looks silent for a moment.
export HA_NCCL_SILENCE_MS=0 HA_NCCL_QP_TIMEOUT=24 HA_NCCL_HEARTBEAT_MS=60000 HA_NCCL_RTO_MS=60000
RUN=0
trap '[ $RUN -ne 0 ] && kill $RUN 2>/dev/null; rm -rf "$TMP"' EXIT

status() {
	timeout 800 "$HA" status "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

# json EXPRESSION: true of the JSON in $TMP/out, which is `s`
json() {
	python3 -c "import json, sys; s = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$TMP/out"
}

# nothing there
status
[ $STATUS -eq 0 ] && grep -q 'no process of this user' "$TMP/out" || fail "nothing"
status --json
[ $STATUS -eq 0 ] && json 's == {"processes": [], "refused": []}' || fail "nothing, as JSON"
HA_NCCL_STATUS_DIR=none status
[ $STATUS -eq 0 ] && grep -q 'is none' "$TMP/out" || fail "none"
status -d "$TMP/nowhere"
[ $STATUS -eq 1 ] && grep -q 'nowhere: No such file or directory; give the directory' "$TMP/err" || fail "--dir that is not there"
touch "$TMP/file"
ln -s / "$TMP/link"
for dir in "$TMP/file" "$TMP/link"; do
	status -d "$dir"
	[ $STATUS -eq 1 ] && [ ! -s "$TMP/out" ] && [ "$(grep -c '^ha status: ' "$TMP/err")" -eq 1 ] || fail "--dir $dir: $STATUS"
	grep -q "$dir: it is no directory, or a link to one; give the directory itself that HA_NCCL_STATUS_DIR" "$TMP/err" || fail "--dir $dir"
done
timeout 800 "$HA" top -b -n 1 -d 100ms >"$TMP/out" 2>"$TMP/err" || fail "ha top without a page"
HA_NCCL_STATUS_DIR=$TMP/file timeout 800 "$HA" top -b -n 1 >"$TMP/out" 2>"$TMP/err"
[ $? -eq 1 ] && grep -q 'ha top: .*file: it is no directory' "$TMP/err" || fail "ha top of a file"
status nonsense
[ $STATUS -eq 2 ] || fail "an argument"
status --watch=x
[ $STATUS -eq 2 ] || fail "a wrong number"
status --help
[ $STATUS -eq 0 ] && grep -q '^usage: ha status' "$TMP/out" || fail "--help"

# two ranks at work
timeout 800 "$HA" perf pingpong -b 8 -e 8 -n 100000000 --ranks 2 --plugin "$PLUGIN" >"$TMP/perf" 2>&1 &
RUN=$!
for _ in $(seq 600); do
	status --json # (a connection is counted a moment before its event is there, and its rail is up)
	json 'sum(p["totals"]["connections"] for p in s["processes"]) == 4 and all(p["events"] for p in s["processes"]) and
	      all(c["rails"][0]["state"] == "up" for p in s["processes"] for c in p["connections"])' 2>/dev/null && break
	sleep 0.1
done
json 'len(s["processes"]) == 2 and not s["refused"]' || fail "two processes"
json 'all(p["state"] == "running" and p["devices"][0]["name"] == "soft0:1" for p in s["processes"])' || fail "their devices"
json 'all(len(p["connections"]) == 2 and p["events"][0]["event"] == "connected" for p in s["processes"])' || fail "connections"
json 'all(c["rails"][0]["state"] == "up" and not c["lost"] for p in s["processes"] for c in p["connections"])' || fail "rails"
json 'all(sum(d["rails_up"] for d in p["devices"]) >= 2 for p in s["processes"])' || fail "rails of devices"
# messages move, seen within a few seconds
before=$(python3 -c "import json; s = json.load(open('$TMP/out')); print(sum(c['messages'] for p in s['processes'] for c in p['connections']))")
for _ in $(seq 600); do
	sleep 0.1
	status --json
	json "sum(c['messages'] for p in s['processes'] for c in p['connections']) > $before" && break
done
json "sum(c['messages'] for p in s['processes'] for c in p['connections']) > $before" || fail "no message counted"
status -e 0
[ "$(grep -c ', hawser ' "$TMP/out")" -eq 2 ] && ! grep -q 'last events' "$TMP/out" || fail "the table"
status -e 1
[ "$(grep -cE '^ +[0-9:.]{12} [a-z_]+ ' "$TMP/out")" -eq 2 ] || fail "the last event"
# what a bad cable has left in the port's counters
counters=$TMP/sys/class/infiniband/soft0/ports/1/counters
mkdir -p "$counters"
echo 31 >"$counters/symbol_error"
echo 2 >"$counters/link_downed"
HA_NCCL_SYSFS_ROOT=$TMP status
[ "$(grep -c '^  soft0:1: 31 symbol errors, link down 2 times since its counters were reset$' "$TMP/out")" -eq 2 ] || fail "the port's counters"
status
grep -q 'symbol errors' "$TMP/out" && fail "counters that are not there"
timeout 800 "$HA" status --watch >"$TMP/out" 2>"$TMP/err" &
WATCH=$!
for _ in $(seq 600); do
	[ "$(grep -c ', hawser ' "$TMP/out")" -ge 4 ] && break
	sleep 0.1
done
[ "$(grep -c ', hawser ' "$TMP/out")" -ge 4 ] || fail "--watch looks again"
kill $WATCH
wait $WATCH 2>/dev/null

# the lines: JSON, each; %p and %% in the name
[ "$(ls "$TMP" | grep -c '^events\.[0-9]*\.%$')" -eq 2 ] || fail "names of the files"
for f in "$TMP"/events.*; do
	python3 - "$f" <<'END' || fail "lines in $f"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert [l["number"] for l in lines] == list(range(len(lines))) and len(lines) >= 2
assert all(l["event"] in ("connected", "protected", "added") and l["time"].endswith("Z") and l["pid"] and "connection" in l for l in lines)
END
done

# a hostile page, a short one, one of another version, a link, a pipe, a folder
page=$(ls -d "$TMP"/pages/* | head -1)
head -c 100 /dev/urandom >"$TMP/pages/1000001"
head -c 1000 "$page" >"$TMP/pages/1000002"
cp "$page" "$TMP/pages/1000003" && printf '\377' | dd of="$TMP/pages/1000003" bs=1 seek=8 conv=notrunc 2>/dev/null
ln -s "$page" "$TMP/pages/1000004"
mkfifo "$TMP/pages/1000005"
mkdir "$TMP/pages/1000006"
status --json
[ $STATUS -eq 0 ] && json 'len(s["processes"]) == 2 and len(s["refused"]) == 6' || fail "hostile pages"
status
[ "$(grep -c 'is not shown: ' "$TMP/out")" -eq 6 ] && grep -q 'version' "$TMP/out" && grep -q 'size' "$TMP/out" ||
	fail "refused with a reason"
rm -rf "$TMP"/pages/100000*

# of a process that cannot be seen from here, and whose page nobody has written to for long: of pid_space and updated_mono 0 is left
cp "$page" "$TMP/pages/1000007"
for at in 24 472; do dd if=/dev/zero of="$TMP/pages/1000007" bs=1 seek=$at count=8 conv=notrunc 2>/dev/null; done
status --json
json '[p["state"] for p in s["processes"]] == ["running"] * 2 + ["silent"]' || fail "a silent process, as JSON"
status
[ "$(grep -c 'SILENT: it has ended or is stopped' "$TMP/out")" -eq 1 ] || fail "a silent process"
timeout 800 "$HA" top -b -n 1 >"$TMP/out" 2>"$TMP/err"
grep -q 'processes: 2, 0 ended' "$TMP/out" || fail "a silent process, in ha top"
rm "$TMP/pages/1000007"

# killed: the pages stay and say so, until the next process starts
pids=$(ls "$TMP/pages")
kill -9 $pids
wait $RUN 2>/dev/null
RUN=0
status --json
json 'len(s["processes"]) == 2 and all(p["state"] == "ended" for p in s["processes"])' || fail "ended processes"
timeout 800 "$HA" perf pingpong -b 8 -e 8 -n 10 --ranks 2 --plugin "$PLUGIN" >"$TMP/perf" 2>&1 || fail "another run"
[ -z "$(ls "$TMP/pages")" ] || fail "pages left: $(ls "$TMP/pages")"
chmod 777 "$TMP/pages"
status
[ $STATUS -eq 1 ] && grep -q 'others than its owner may write' "$TMP/err" || fail "a directory for everybody"
finish
