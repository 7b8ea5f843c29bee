#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha top` on a terminal of tmux, whose screen is read: what a job carries, a cut as it happens, every key; and as text (-b).
# Argument: the ha program.
set -euo pipefail
HA=$1
command -v tmux >/dev/null || { echo "skipped: no tmux (scripts/install-deps test)"; exit 77; }
TMP=$(mktemp -d)
JOB=
export SOFTROCE_CONTROL=$TMP/control HA_NCCL_STATUS_DIR=$TMP/status LC_ALL=C.UTF-8
mkdir -m 700 "$SOFTROCE_CONTROL"
unset TMUX NCCL_DEBUG SOFTROCE_DEVICES RANK WORLD_SIZE LOCAL_RANK
terminal() { tmux -S "$TMP/tmux" -f /dev/null "$@"; }
tidy() {
	terminal kill-server 2>/dev/null || true
	[ -z "$JOB" ] || { kill -KILL "$JOB" && wait "$JOB"; } 2>/dev/null || true
	rm -rf "$TMP"
}
trap tidy EXIT
screen() { terminal capture-pane -p -t top; }
fail() {
	echo "FAIL: $*"
	screen || true
	exit 1
}
# sees PATTERN, misses PATTERN: until the screen shows it, or does not any more. Only a hang reaches the limit.
sees() {
	local i
	for i in $(seq 2400); do
		! screen | grep -qE -- "$1" || return 0
		sleep 0.05
	done
	fail "the screen never shows: $1"
}
misses() {
	local i
	for i in $(seq 2400); do
		screen | grep -qE -- "$1" || return 0
		sleep 0.05
	done
	fail "the screen still shows: $1"
}
press() { terminal send-keys -t top "$@"; }

# ---- nobody has hawser open ----

"$HA" top -b -n 1 >"$TMP/empty" || fail "status $? without a process"
grep -q 'jobs: 0  processes: 0' "$TMP/empty" || fail "without a process: $(cat "$TMP/empty")"
rc=0
"$HA" top </dev/null >"$TMP/out" 2>"$TMP/err" || rc=$?
[ $rc = 1 ] && grep -q 'there is no terminal' "$TMP/err" || fail "without a terminal: $rc"

# ---- a job ----

HA_NCCL_VERBS=soft "$HA" perf allreduce --ranks 2 -b 256K -e 256K --duration 600s --compute 5ms >"$TMP/job.out" 2>&1 &
JOB=$!
terminal new-session -d -s top -x 200 -y 120 "'$HA' top -d 200ms -e 40; echo ended with \$?; sleep 600"
sees 'jobs: 1  processes: 2, 0 ended'
sees 'connections: 4 ends, 0 not protected, 0 lost'
sees 'soft0:1 +up +[1-9][0-9]*\.[0-9] +[1-9][0-9]*\.[0-9] ' # it carries something
sees ' nic  .* soft0:1 -> .*soft0:1>soft1:1 up 1024, soft1:1>soft0:1 up'
sees 'protected .*soft0:1 -> '

# A cut, as it happens.
"$HA" cut soft0 >/dev/null
sees 'soft0:1 +down '
sees '[1-9][0-9]* not protected'
sees 'suspected +port_down '
sees 'failed_over .* stalled [0-9.]+ ms, [0-9]+ bytes again'
"$HA" top -b -n 1 >"$TMP/text"
sed -n '/^EVENT AT/,$p' "$TMP/text" | awk '$1 ~ /:/ { print $1 }' >"$TMP/times"
[ "$(wc -l <"$TMP/times")" -ge 8 ] && sort -rc "$TMP/times" || fail "events of all processes, the newest first: $(cat "$TMP/text")"
"$HA" heal soft0 >/dev/null
sees 'connections: 4 ends, 0 not protected'
misses ':1 +down '

# ---- keys ----

press h
sees '^Keys, as in top:'
press x
misses '^Keys, as in top:'
press e
misses '^EVENT AT'
press e
sees '^EVENT AT'
press c
misses 'PROTECTED +MSG/s'
press c
sees 'PROTECTED +MSG/s'
press '>'
sees '^sorted by failovers'
press '>' '>'
sees '^sorted by name'
names() { screen | sed -n 's/.* \(soft[01]:1 [-<].*\) soft[01]:1>.*/\1/p'; }
sorted() { [ "$(names | wc -l)" = 4 ] && names | LC_ALL=C sort -c "$@" 2>/dev/null; }
for i in $(seq 2400); do sorted && break; sleep 0.05; done
sorted || fail "not sorted by name"
press R
sees '^sorted by name, reversed'
for i in $(seq 2400); do sorted -r && break; sleep 0.05; done
sorted -r || fail "not in reverse order"
press '<' '<' '<'
sees '^sorted by messages, reversed'
press d
sees '^time between two looks'
press 'nonsense' Enter
sees "^a time from 50ms to 3600s, not 'nonsense'"
press d
press '100ms' Enter
misses '^time between'
press Down
misses '^ +PID PORT'
press Home
sees '^ +PID PORT'
press End
misses 'SENT MB/s'
press Home
sees 'SENT MB/s'
terminal resize-window -t top -x 80 -y 12
sees 'jobs: 1'
terminal resize-window -t top -x 200 -y 120
sees 'PROTECTED +MSG/s'

# ---- idle connections, and a process that is killed ----

press i
sees 'without idle connections'
kill -KILL "$(pgrep -P "$JOB" | head -1)"
wait "$JOB" || true
JOB=
sees 'ended without closing'
misses '0 ended without closing'
press q
sees '^ended with 0'

# ---- as text ----

"$HA" top -b -n 2 -d 100ms -e 3 >"$TMP/text" || fail "-b: $?"
[ "$(grep -c '^ha top - ' "$TMP/text")" = 2 ] || fail "not two looks: $(cat "$TMP/text")"
! grep -q "$(printf '\033')" "$TMP/text" || fail "-b writes a terminal's sequences"
echo "all right"
