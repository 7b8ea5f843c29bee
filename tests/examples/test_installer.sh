#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An upgrade while a job runs, by the installer image's script: the job keeps what it has opened, its NIC fails afterwards, and no
# element is wrong; the next job has the new plugin. A file that is not changed is not touched. A removal leaves what is another's.
. "$(dirname "$0")/lib.sh"
from=$work/from to=$work/to
mkdir -p "$from/lib/hawser" "$from/bin"
cp "$build/libnccl-net-ha.so" "$from/lib/"
ln -s ../libnccl-net-ha.so "$from/lib/hawser/libnccl-net.so"
cp /bin/true "$from/bin/ha"
install=$root/examples/installer/install.sh
"$install" "$from" "$to" >"$work/out"
cmp "$from/lib/libnccl-net-ha.so" "$to/lib/libnccl-net-ha.so"
[ "$(readlink "$to/lib/hawser/libnccl-net.so")" = ../libnccl-net-ha.so ] || fail "the link is not a link"
unchanged=$(stat -c %i "$to/bin/ha")

export HA_NCCL_VERBS=$build/softroce/libibverbs.so.1
head -c 4096 /dev/zero >>"$from/lib/libnccl-net-ha.so" # another version of the file, which loads as well
"$HA" perf sendrecv --plugin "$to/lib/libnccl-net-ha.so" --ranks 2 -b 64K -e 64K --duration 600s --compute 5ms \
	--at 1s "'$install' '$from' '$to' && '$HA' cut soft0 && sleep 1 && '$HA' heal soft0 && sleep 1; kill -INT \$HA_RANK_PID_0" >"$work/out" 2>&1 || fail "the job has not survived the upgrade"
grep -q '^# Out of bounds values : 0 OK' "$work/out" || fail "wrong elements"
cmp "$from/lib/libnccl-net-ha.so" "$to/lib/libnccl-net-ha.so" || fail "it was not upgraded while the job ran"
for _ in $(seq 600); do # on a busy machine its last files come when the job has ended
	[ -n "$(find "$to" -name '*.new.*')" ] || break
	sleep 0.1
done
[ "$(stat -c %i "$to/bin/ha")" = "$unchanged" ] || fail "an unchanged file was replaced"
[ -z "$(find "$to" -name '*.new.*')" ] || fail "temporary files are left"
"$HA" perf pingpong --plugin "$to/lib/libnccl-net-ha.so" --ranks 2 -b 8 -e 8 -n 20 >"$work/out" 2>&1 || fail "the next job"

# The next version has a file less, in a folder of its own; another's file lies beside. Then all goes but that.
mkdir -p "$from/share/old"
touch "$from/share/old/file" "$to/another"
"$install" "$from" "$to" >"$work/out"
rm -r "$from/share"
"$install" "$from" "$to" >"$work/out"
[ ! -e "$to/share" ] || fail "what the new version does not have is still there"
[ -e "$to/bin/ha" ] || fail "an upgrade has taken away what the new version has"
"$install" --remove "$to" >"$work/out" || fail "--remove"
[ "$(ls -A "$to")" = another ] || fail "a removal leaves $(find "$to")"
"$install" --remove "$to" >"$work/out" || fail "a removal where nothing is left to remove fails"
[ "$(ls -A "$to")" = another ] || fail "a second removal leaves $(find "$to")"
rm "$to/another"

# A removal that is killed in its middle, as when its pod ends: the next one goes on.
mkdir "$work/killed"
printf '#!/bin/sh\n%s "$@"\nkill -9 $PPID\n' "$(command -v rm)" >"$work/killed/rm"
chmod +x "$work/killed/rm"
"$install" "$from" "$to" >"$work/out"
! PATH=$work/killed:$PATH "$install" --remove "$to" >"$work/out" 2>&1 || fail "the removal was not killed"
[ -e "$to" ] || fail "the removal was killed too late"
"$install" --remove "$to" >"$work/out" || fail "the removal after one that was killed"
[ ! -e "$to" ] || fail "after a removal that was killed, the next one leaves $(find "$to")"
"$install" --remove "$to" >"$work/out" || fail "a removal of what is not there fails"
"$install" "$from" "$to" >"$work/out" && "$install" --remove "$to" >"$work/out" && [ ! -e "$to" ] || fail "a folder is left"
echo "upgraded under a job, whose NIC failed afterwards; nothing was lost"
