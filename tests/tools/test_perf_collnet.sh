#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha perf collnet`: hawser's own plugin over the software NIC, with a backend on this host that adds, dies in the middle and
# comes back. Arguments: the ha program, the plugin, the backend.
BACKEND=$3
. "$(dirname "$0")/lib.sh"
export HA_NCCL_VERBS=soft NCCL_DEBUG=INFO
export SOFTROCE_DEVICES="${SOFTROCE_DEVICES:-127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24}"
export NETCCL_BACKEND=$TMP/ina.sock NCCL_COLLNET_ENABLE=1

# backend OPTIONS: runs one until the script ends; its process in $TMP/pid
cat >"$TMP/backend" <<END
#!/bin/bash
exec 9< <(exec sleep 600)
trap 'kill \$! '\$! EXIT
"$BACKEND" --socket "$TMP/ina.sock" "\$@" <&9 >>"$TMP/backend.out" 2>&1 &
echo \$! >"$TMP/pid.new" && mv "$TMP/pid.new" "$TMP/pid"
wait \$!
END
chmod +x "$TMP/backend"
started=
backend() {
	local before
	before=$(cat "$TMP/backend.out" 2>/dev/null | grep -c ready)
	"$TMP/backend" "$@" 2>/dev/null &
	started="$started $!"
	for _ in $(seq 1200); do
		[ "$(cat "$TMP/backend.out" 2>/dev/null | grep -c ready)" -gt "$before" ] && return
		sleep 0.05
	done
	fail "the backend does not start: $(cat "$TMP/backend.out")"
}
end_backend() {
	kill -9 "$(cat "$TMP/pid")" 2>/dev/null
	sleep 0.1
}
trap 'end_backend; rm -rf "$TMP"' EXIT

# summed N PATTERN ARGUMENTS: a run that must end well, with N rows, no wrong element, and the pattern in its log
summed() {
	local rows=$1 pattern=$2
	shift 2
	timeout 800 "$HA" perf collnet --plugin "$PLUGIN" "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
	[ $STATUS -eq 0 ] || fail "status $STATUS: $*"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "no clean footer: $*"
	[ "$(grep -c '^ *[0-9]* *[0-9]* .* 0$' "$TMP/out")" -eq "$rows" ] || fail "not $rows rows: $*"
	cat "$TMP/out" "$TMP/err" | grep -q -- "$pattern" || fail "no '$pattern' in the log: $*"
}

# no backend: no device, and why
timeout 800 "$HA" perf collnet --plugin "$PLUGIN" --ranks 2 >"$TMP/out" 2>"$TMP/err" && fail "collnet without a backend"
cat "$TMP/out" "$TMP/err" | grep -q "collnet: no device, so NCCL goes without: .*ina.sock" || fail "no reason"
grep -q 'offers no collnet device' "$TMP/err" || fail "no word about the device"
# on the rails alone
HA_NCCL_COLLNET=1 summed 3 "go over the rails (HA_NCCL_COLLNET=1)" --ranks 3 -b 4 -e 4M -f 1000 -n 3 --check-all

# old and new versions over the switch; slots of more than a segment
backend
for version in 6 8 12; do
	summed 2 "sums of 3 ranks are made by the switch" --ranks 3 --net-version $version -b 12 -e 1M -f 80000 -n 2
done
summed 1 "sums of 4 ranks are made by the switch" --ranks 4 -b 12M -e 12M -n 2 -w 1 --check-all --buffsize 24M --steps 4
grep -q 'go on over the rails\|go over the rails' "$TMP/out" "$TMP/err" && fail "it left the switch"

# killed in the middle, and back: every result is right, all ranks have the same bits, and the switch is used again
cat >"$TMP/await" <<END
#!/bin/bash
# LINES PATTERN: until the run in the foreground has said so
until [ "\$(cat "$TMP/out" "$TMP/err" | grep -c -- "\$2")" -ge "\$1" ]; do sleep 0.1; done
END
chmod +x "$TMP/await"
switch='sums of 3 ranks are made by the switch'
# (the moment may lie between two operations: that one is in the middle of one is for --die-at below)
summed 1 "the switch has left us" --ranks 3 -b 3M -e 3M --buffsize 40M --duration 600s \
	--at 0.2s "$TMP/await 3 '$switch'; kill -9 \$(cat $TMP/pid); sleep 0.2; $TMP/backend >/dev/null 2>&1" \
	--at 0.3s "$TMP/await 6 '$switch'; sleep 0.5; kill -INT \$HA_RANK_PID_0"
[ "$(cat "$TMP/out" "$TMP/err" | grep -c "$switch")" -ge 6 ] || fail "it did not come back to the switch"
grep -q '^ha perf' "$TMP/err" && fail "a line about an error"
end_backend

# the backend and the rails of two ranks at once
rm -f "$TMP/pid"
backend
summed 1 "failed over" --ranks 3 -b 6M -e 6M --buffsize 32M --duration 600s \
	--at 0.2s "$TMP/await 3 '$switch'; kill -9 \$(cat $TMP/pid); ha cut soft0:\$HA_PERF_PID_0; ha cut soft0:\$HA_PERF_PID_2" \
	--at 0.3s "$TMP/await 1 'the switch has left us'; $TMP/await 1 'failed over'; sleep 0.5; kill -INT \$HA_RANK_PID_0"
end_backend

# its own faults: a group that ends, one that falls silent, one whose backend dies when some have the answer, one that cannot be had
for fault in "--timeout-at 5" "--cancel-at 7" "--die-at 4"; do
	rm -f "$TMP/pid"
	backend $fault
	summed 1 "finished over the rails" --ranks 3 -b 5M -e 5M -n 2 -w 1 --check-all --buffsize 40M
	end_backend
done
backend --silent-at 5
HA_NCCL_COLLNET_TIMEOUT_MS=500 summed 1 "finished over the rails" --ranks 2 -b 5M -e 5M -n 2 -w 1 --check-all --buffsize 40M
end_backend
backend --eagain
timeout 800 "$HA" perf collnet --plugin "$PLUGIN" --ranks 3 >"$TMP/out" 2>"$TMP/err" && fail "collnet without a group"
grep -q 'connect: collnet of plugin' "$TMP/err" || fail "no word about connect"
HA_NCCL_COLLNET=1 summed 1 "no switch yet, no group" --ranks 3 -b 1M -e 1M -n 3 --check-all
end_backend

# a rank that is killed ends the run with one line
backend
timeout 800 "$HA" perf collnet --plugin "$PLUGIN" --ranks 3 -b 1M -e 1M --duration 20s --at 0.2s 'kill -9 $HA_PERF_PID_1' >"$TMP/out" 2>"$TMP/err"
[ $? -eq 1 ] || fail "status after the death of a rank"
grep -q '^ha perf: rank 1 was killed by signal 9' "$TMP/err" || fail "no line about the dead rank"

# called wrongly
unset NCCL_DEBUG
for wrong in "-d int8" "-o max" "--vs x" "--json" "--dev all" "--duration 1s --compute 1ms"; do
	timeout 800 "$HA" perf collnet --ranks 2 $wrong >"$TMP/out" 2>"$TMP/err"
	[ $? -eq 2 ] && [ "$(wc -l <"$TMP/err")" -eq 1 ] || fail "called with $wrong"
done
finish
