#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Traffic of `ha perf` under HA_NCCL_POLICY=agent while ha-agent is absent, started, stopped, killed and started again: every
# iteration is verified, the traffic goes on in each state, and each process says once what has changed. Arguments: ha, plugin, ha-agent.
. "$(dirname "$0")/../tools/lib.sh"
. "$(dirname "$0")/../tools/interrupt.sh"
AGENT=$3
export HA_NCCL_VERBS=soft HA_NCCL_POLICY=agent HA_NCCL_AGENT_STALE_MS=3000 HA_NCCL_RTO_MS=40000 HA_NCCL_HEARTBEAT_MS=10000
export HA_NCCL_AGENT_SOCKET=$TMP/mpib/agent.sock HA_NCCL_AGENT_HINTS=$TMP/mpib/hints HA_NCCL_EVENTS=$TMP/events.%p
# a subnet pair of its own: other tests may run at the same time
export SOFTROCE_DEVICES="${SOFTROCE_DEVICES:-127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24}"
PID= PERF=
trap 'kill -9 $PID $PERF 2>/dev/null; rm -rf "$TMP"' EXIT

start() {
	"$AGENT" --metrics 127.0.0.1:0 2>>"$TMP/log" &
	PID=$!
}

# expect_cause N CAUSE: both processes have come to say it N times, for the agent as a whole
expect_cause() {
	for _ in $(seq 600); do
		[ "$(count "$2" | sort -u)" = "$1" ] && return
		sleep 0.1
	done
	fail "$2 is not told $1 times: $(count "$2" | tr '\n' ' ')"
	cat "$TMP"/events.* | grep advice | cut -c1-200
	exit 1
}

count() {
	for file in "$TMP"/events.*; do
		grep '"advice"' "$file" | grep -v ' -> ' | grep -c "\"$1\""
	done
}

# messages of all connections, from the status pages
sent() {
	"$HA" status --json | python3 -c 'import json, sys
print(sum(c.get("messages", 0) for p in json.load(sys.stdin)["processes"] for c in p["connections"]))'
}

goes_on() {
	local before now
	before=$(sent)
	for _ in $(seq 600); do
		now=$(sent)
		[ "$now" -gt "$before" ] && return
		sleep 0.1
	done
	fail "nothing moves $1"
}

env --default-signal=INT "$HA" perf allreduce --plugin "$PLUGIN" --ranks 2 --dev 0+1 -b 4M -e 4M --duration 500s --compute 40ms >"$TMP/out" 2>"$TMP/err" &
PERF=$!
for _ in $(seq 600); do [ -n "$(ls "$TMP"/events.* 2>/dev/null)" ] && break; sleep 0.1; done
expect_cause 1 no_agent
goes_on "without an agent"
start
expect_cause 1 followed
timeout 800 "$HA" agent set '*' '*' 700 || fail "set"
goes_on "with an agent"
kill -STOP $PID
expect_cause 1 agent_stale
goes_on "beside an agent that hangs"
kill -CONT $PID
expect_cause 2 followed
kill -9 $PID
wait $PID 2>/dev/null
expect_cause 2 agent_stale
goes_on "after the agent's death"
start
expect_cause 3 followed
goes_on "with the next agent"
# each of the two connections has had one hint, and never a bad one
for _ in $(seq 600); do
	own=$(cat "$TMP"/events.* | grep '"advice"' | grep ' -> ' | grep -c '"followed"')
	[ "$own" -ge 2 ] && break
	sleep 0.1
done
[ "$own" -eq 2 ] || fail "the connections' own events: $own"
! cat "$TMP"/events.* | grep -q '"bad_hint"' || fail "a bad hint"
interrupt $PERF 2
wait $PERF
[ $? -eq 0 ] || fail "ha perf: $(tail -3 "$TMP/err")"
PERF=
grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "wrong data"
finish
