#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A command that is killed leaves no rank behind. test_ranks_go.sh RANKS COMMAND...
# The ranks inherit the command's standard output: it ends when the last of them has gone.
set -u
ranks=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkfifo "$dir/out"

children() { # of a process
	for stat in /proc/[0-9]*/stat; do
		read -r line 2>/dev/null <"$stat" || continue
		rest=${line##*) }
		rest=${rest#* }
		[ "${rest%% *}" = "$1" ] && basename "${stat%/stat}"
	done
	return 0
}

"$@" >"$dir/out" 2>"$dir/err" &
command=$!
exec 3<"$dir/out"
tries=0
while left=$(children $command) && [ "$(echo "$left" | wc -w)" -lt "$ranks" ]; do
	tries=$((tries + 1))
	if [ $tries = 600 ] || ! kill -0 $command; then
		echo "there never were $ranks ranks: $(cat "$dir/err")"
		kill -KILL $command 2>/dev/null
		exit 1
	fi
	sleep 0.1
done
kill -KILL $command
wait $command 2>/dev/null
timeout 800 cat <&3 >/dev/null && exit 0
echo "the command is gone, and its ranks are still there:" $left
# shellcheck disable=SC2086
kill -KILL $left
exit 1
