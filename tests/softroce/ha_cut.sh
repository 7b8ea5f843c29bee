#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha soft, cut, heal, ...: selectors, several processes, what a dead process leaves, wrong arguments.
# Usage: ha_cut.sh BUILD_DIR
set -uo pipefail
build=$1
ha=$build/ha
[ -x "$ha" ] || { echo "ha is not built"; exit 1; }
command -v ibv_asyncwatch >/dev/null || { echo "skipped: ibv_asyncwatch is not installed"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL SOFTROCE_DEVICES=127.64.0.0/24,127.65.0.0/24
pids=()
finish() {
	kill "${pids[@]}" 2>/dev/null
	rm -rf "$SOFTROCE_CONTROL"
}
trap finish EXIT
touch "$SOFTROCE_CONTROL"/log{1,2,3}
out=
fail() { echo "failed: $1"; echo "$out"; exit 1; }
expect() { # status pattern command...
	local status=$1 pattern=$2
	shift 2
	out=$("$@" 2>&1)
	local rc=$?
	[ $rc = "$status" ] || fail "'$*' exits $rc, not $status"
	grep -qE "$pattern" <<<"$out" || fail "'$*' does not say '$pattern'"
}
watch() { # number device
	"$build/softroce-run" ibv_asyncwatch -d "$2" >"$SOFTROCE_CONTROL/log$1" 2>&1 &
	pids+=($!)
	for _ in $(seq 600); do
		grep -q 'async event FD' "$SOFTROCE_CONTROL/log$1" && return
		sleep 0.05
	done
	fail "ibv_asyncwatch does not start"
}
received() { # number event
	for _ in $(seq 600); do
		grep -q "$2" "$SOFTROCE_CONTROL/log$1" && return
		sleep 0.05
	done
	out=$(cat "$SOFTROCE_CONTROL/log$1")
	fail "process $1 did not receive $2"
}

expect 0 'no process has a software NIC open' "$ha" soft
watch 1 soft0
watch 2 soft0
watch 3 soft1
expect 0 "soft0@127.64.0.[0-9]+ \(pid ${pids[1]}, job $$\): up" "$ha" soft
two=$(sed -n "s/^soft0@\([0-9.]*\) (pid ${pids[1]},.*/\1/p" <<<"$out")
[ "$(grep -c ': up' <<<"$out")" = 3 ] || fail "three devices"

expect 0 "$two.*: cut" "$ha" cut "soft0@$two"
received 2 PORT_ERR
expect 0 "soft0@$two.*down, cut" "$ha" soft soft0
expect 0 '"device":"soft0".*"state":"down","cut":true,"answers":true,"counters":' "$ha" soft --json soft0
line='^{"monotonic_ns":[0-9]*,"nics":\[{.*}]}$'
[ "$("$ha" soft --json --every 10ms | head -n 3 | grep -c "$line")" = 3 ] || fail "three looks in a row"
expect 2 "every takes a time from 1ms to 86400s, as in 10s, 500ms or 20us, not '1us'" "$ha" soft --every 1us
expect 0 "soft0@$two.*down, cut" "$ha" soft soft0
[ "$(grep -c ': up' <<<"$out")" = 1 ] || fail "the other one stays up, soft1 is not asked for"
expect 0 ': healed' "$ha" heal soft0
[ "$(grep -c healed <<<"$out")" = 2 ] || fail "heal reaches both"
received 2 PORT_ACTIVE
grep -q PORT_ERR "$SOFTROCE_CONTROL/log1" && fail "the first was cut too"

expect 0 ': dropping' "$ha" drop "soft1:${pids[2]}" 2.5% tx
expect 0 ': delaying' "$ha" delay soft1 5ms 1ms rx
expect 0 ': duplicating' "$ha" duplicate soft1 1
expect 0 ': reordering' "$ha" reorder soft1 10% 100us
expect 0 ': swallowing' "$ha" blackhole soft1 rx
expect 0 'tx: drops 2.5 %' "$ha" soft soft1
for fault in 'rx: black hole' 'rx: delays 5000 us, jitter 1000 us' 'tx: duplicates 1 %' 'rx: reorders 10 %'; do
	grep -q "$fault" <<<"$out" || fail "not listed: $fault"
done
grep -q 'rx: drops' <<<"$out" && fail "packets are dropped in the wrong direction too"
expect 0 ': killed' "$ha" kill soft1
received 3 DEVICE_FATAL
expect 0 ': healed' "$ha" heal soft1
expect 0 'soft1@.*: dead' "$ha" soft
expect 2 "NEW-NAME is letters, digits, '_' and '-', a letter first, not '4x'" "$ha" restore soft1 4x
expect 1 'has not been killed' "$ha" restore soft0
expect 0 ': back for who lists devices' "$ha" restore soft1 mlx5_4

# Only the newest job is reached: a second one, whose launcher is a shell of its own, and then the first again.
mkfifo "$SOFTROCE_CONTROL/wait"
bash -c '"$1/softroce-run" ibv_asyncwatch -d soft0 >"$2" 2>&1 & echo $! >"$3.pid"; read -r _ <"$3"; kill $!; wait $!' \
	launcher "$build" "$SOFTROCE_CONTROL/log4" "$SOFTROCE_CONTROL/wait" 2>/dev/null &
launcher=$!
for _ in $(seq 600); do
	grep -q 'async event FD' "$SOFTROCE_CONTROL/log4" 2>/dev/null && break
	sleep 0.05
done
other=$(cat "$SOFTROCE_CONTROL/wait.pid")
expect 0 "^ha cut: reaches job $launcher \\(ibv_asyncwatch $other\\); not job $$ \\(ibv_asyncwatch ${pids[0]}, ibv_asyncwatch ${pids[1]}\\)$" \
	"$ha" cut soft0
[ "$(grep -c ': cut$' <<<"$out")" = 1 ] || fail "only the newest job's device is cut"
expect 0 "pid $other, job $launcher.*down, cut" "$ha" soft soft0
[ "$(grep -c ': up' <<<"$out")" = 2 ] || fail "the other job's devices stay up"
expect 0 ': healed' "$ha" heal --pid "$other" soft0
expect 0 "reaches job $$ " "$ha" drop --job "${pids[0]}" soft0 1
[ "$(grep -c ': dropping$' <<<"$out")" = 2 ] || fail "--job by one of its processes reaches both"
expect 0 ': healed' "$ha" heal --all soft0
[ "$(grep -c ': healed$' <<<"$out")" = 3 ] || fail "--all reaches every process"
HA_RANK_PID_0=${pids[0]} expect 0 "reaches job $$ " "$ha" heal soft0
expect 1 'no process of that job has a device' "$ha" cut --job 1 soft0
expect 2 'exclude each other' "$ha" cut --all --pid 3 soft0
expect 2 "ha cut: --pid takes a whole number from 1 to 2147483647, not 'x'" "$ha" cut soft0 --pid x
echo >"$SOFTROCE_CONTROL/wait"
wait $launcher

# A process that dies by a signal leaves its files; the next look removes them.
kill -9 "${pids[0]}"
wait "${pids[0]}" 2>/dev/null # silences bash's notice
[ -e "$SOFTROCE_CONTROL/soft0.${pids[0]}" ] || fail "no stale page to remove"
expect 0 "soft0@$two" "$ha" soft soft0
[ "$(grep -c soft0@ <<<"$out")" = 1 ] || fail "the dead process is still listed"
for file in "$SOFTROCE_CONTROL/soft0.${pids[0]}" "$SOFTROCE_CONTROL/soft0.${pids[0]}.bell"; do
	[ -e "$file" ] && fail "stale files stay"
done

# A stopped process is named, not waited for without end.
kill -STOP "${pids[1]}"
until [ -z "$(awk '$3 != "T"' /proc/"${pids[1]}"/task/*/stat)" ]; do sleep 0.02; done
expect 1 'does not answer: its process is stopped; the change takes effect when it goes on' "$ha" cut soft0
kill -CONT "${pids[1]}"
received 2 PORT_ERR

expect 1 "no process has a device 'soft9'" "$ha" cut soft9
expect 1 "no process has a device" "$ha" cut soft0@127.64.0.99
expect 2 '^ha cut: DEVICE is missing; ' "$ha" cut
expect 2 "^ha soft: 'b' is one word too many; " "$ha" soft a b
expect 2 '^ha cut: there is no option --pit; did you mean --pid; ' "$ha" cut --pit 1 soft0
# One line that says what the argument takes.
while IFS='|' read -r wrong says; do
	# shellcheck disable=SC2086
	expect 2 "^ha [a-z]+: $says.*; .ha [a-z]+ --help. explains$" "$ha" $wrong
	[ "$(wc -l <<<"$out")" = 1 ] || fail "more than one line: $wrong"
done <<'END'
drop soft0|PERCENT is missing
drop soft0 101|PERCENT is a number from 0 to 100, as in 1 or 0.5%, not '101'
drop soft0 200|PERCENT is a number from 0 to 100, as in 1 or 0.5%, not '200'
drop soft0 x|PERCENT is a number from 0 to 100, as in 1 or 0.5%, not 'x'
drop soft0 1 up|after that comes tx, rx or nothing, not 'up'
delay soft0 5|TIME is from 0 to 10s with its unit, as in 20us, 5ms or 1s, not '5'
delay soft0 11s|TIME is from 0 to 10s with its unit, as in 20us, 5ms or 1s, not '11s'
delay soft0 1ms x|JITTER is from 0 to 10s
blackhole soft0|the direction is tx or rx, not ''
blackhole soft0 up|the direction is tx or rx, not 'up'
cut soft0 now|nothing follows, not 'now'
reorder soft0 1 2 3|TIME is from 0 to 10s
rate soft0|MB/S is missing
rate soft0 abc|MB/S is a number from 0 to 1000000, not 'abc'
END
for command in cut heal kill restore drop delay duplicate reorder blackhole soft; do
	expect 0 '^usage: ha' "$ha" $command --help
done

# Somebody else could have made a folder where everybody may write: no page in it, and a line that says so.
chmod 777 "$SOFTROCE_CONTROL"
expect 0 'cannot reach it: no control page' "$build/softroce-run" ibv_devinfo -d soft0
chmod 700 "$SOFTROCE_CONTROL"

# A SOFTROCE_CONTROL that is not there is not made; the device works, and every command says what to do.
SOFTROCE_CONTROL=$SOFTROCE_CONTROL/none expect 0 'SOFTROCE_CONTROL=.*/none is no directory; make it' "$build/softroce-run" ibv_devinfo -d soft0
[ -e "$SOFTROCE_CONTROL/none" ] && fail "SOFTROCE_CONTROL was made"
SOFTROCE_CONTROL=$SOFTROCE_CONTROL/none expect 1 'SOFTROCE_CONTROL=.*/none: No such file or directory' "$ha" cut soft0
SOFTROCE_CONTROL=$SOFTROCE_CONTROL/none expect 1 'No such file or directory' "$ha" soft
SOFTROCE_DEVISES=127.64.0.0/24 expect 0 'SOFTROCE_DEVISES is set, but there is no such variable; did you mean SOFTROCE_DEVICES' \
	"$build/softroce-run" ibv_devinfo -d soft0
echo "faults set, listed and undone from outside"
