#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A rank of ha gpu-check that has gone is not waited for: the command ends soon, says which rank went and how, and leaves none behind.
# test_check_alone.sh WHERE RANK PATH-OF-HA PATH-OF-dies_at.so      WHERE: connect, connect2, listen (dies_at.c), or "work": under way
set -u
where=$1
rank=$2
ha=$3
lib=$4
limit=60 # s; on a machine that does nothing else it is 2, and without the end of a rank being seen more than the 100 of the time-out
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

start=$(date +%s)
if [ "$where" = work ]; then
	timeout 800 "$ha" gpu-check --soft --rounds 1000000 >"$dir/out" 2>"$dir/err" &
	command=$!
	until grep -q 'put ' "$dir/out"; do
		kill -0 $command || { echo "it ended by itself: $(cat "$dir/out" "$dir/err")"; exit 1; }
		sleep 0.1
	done
	parent=$(pgrep -P $command)
	start=$(date +%s)
	# in the order in which they were made, which their numbers are not when these begin again
	kill -KILL "$(cut -d" " -f$((rank + 1)) "/proc/$parent/task/$parent/children")"
	wait $command
else
	HA_TEST_DIES_AT=$where LD_PRELOAD=$lib timeout 800 "$ha" gpu-check --soft --rounds 10 >"$dir/out" 2>"$dir/err"
fi
status=$?
took=$(($(date +%s) - start))

[ $status = 1 ] || { echo "status $status after $took s: $(cat "$dir/out" "$dir/err")"; exit 1; }
[ $took -le $limit ] || { echo "it took $took s"; exit 1; }
[ "$(grep -c "^ha gpu-check: rank $rank has ended (killed by signal 9)" "$dir/err")" = 1 ] ||
	{ echo "no line, or more than one, says that rank $rank was killed: $(cat "$dir/err")"; exit 1; }
echo "after $took s: $(grep '^ha gpu-check' "$dir/err")"
