#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha-switch reads its file of groups again (SIGHUP): groups that move into slots which others give up, and such that cannot move. Usage: test_reload.sh
# HA-SWITCH
set -euo pipefail
program=$1
top=$(mktemp -d)

# groups "NUMBER epoch N slots FIRST HOWMANY"...: what the file says
groups() {
	printf 'group %s members 1.1.1.1 1.1.1.2\n' "$@" >"$top/groups"
}

. "$(dirname "$0")/says.sh"

# reload "NUMBER ..."...: the file is read again
reload() {
	groups "$@"
	kill -HUP "$switch"
}

groups '1 epoch 1 slots 0 16' '2 epoch 1 slots 16 16'
"$program" --address=10.0.0.1 --metrics=none --memory=32 --idle-us=100 --shared --port="net_memif0,role=server,socket=$top/m" --groups="$top/groups" \
	>"$top/out" 2>"$top/err" &
switch=$!
trap 'kill "$switch" 2>/dev/null || true; rm -rf "$top"' EXIT
says 'group 2 epoch 1: 2 ranks, 1 workers, slots 16 to 31'
says 'metrics'

# shifted: each into the slots of the next one
reload '1 epoch 2 slots 16 16' '2 epoch 2 slots 32 16' '3 epoch 1 slots 0 16'
says 'group 3 epoch 1: 2 ranks, 1 workers, slots 0 to 15'
says 'group 1 epoch 2: 2 ranks, 1 workers, slots 16 to 31'
says 'group 2 epoch 2: 2 ranks, 1 workers, slots 32 to 47'

# exchanged
reload '1 epoch 3 slots 32 16' '2 epoch 3 slots 16 16' '3 epoch 1 slots 0 16'
says 'group 1 epoch 3: 2 ranks, 1 workers, slots 32 to 47'
says 'group 2 epoch 3: 2 ranks, 1 workers, slots 16 to 31'
! grep -F 'another group has some of these slots' "$top/err" || exit 1

# Group 2 cannot move, for its epoch is not a new one: nobody gets its slots, and it goes on.
reload '1 epoch 4 slots 16 16' '2 epoch 3 slots 32 16' '3 epoch 2 slots 64 16'
says 'group 3 epoch 2: 2 ranks, 1 workers, slots 64 to 79'
says 'group 1: another group has some of these slots; groups that can be are as the file says'
reload '1 epoch 3 slots 32 16' '2 epoch 3 slots 16 16' '4 epoch 1 slots 0 16' '5 epoch 1 slots 128 16'
says 'group 5 epoch 1:'
! grep -E 'group [12] epoch 4|group [12] epoch 3 has ended' "$top/err" || exit 1
[ "$(grep -cE 'group [12] epoch 3:' "$top/err")" = 2 ] || { cat "$top/err" >&2; exit 1; }
kill "$switch"
wait "$switch"
