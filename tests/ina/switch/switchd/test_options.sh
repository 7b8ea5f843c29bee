#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ha-switch says in one line what is wrong with how it was called, and ends with 2 (1: it cannot run here). Usage: test_options.sh HA-SWITCH
set -euo pipefail
program=$1
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
memif="--port=net_memif0,role=server,socket=$top/m"
good=(--address=10.0.0.1 --metrics=none --memory=32)

# refused STATUS SENTENCE OPTION...
refused() {
	local want=$1 sentence=$2 status=0
	shift 2
	"$program" "$@" >"$top/out" 2>"$top/err" || status=$?
	grep -v 'INFO NET/HA' "$top/err" >"$top/lines" || true
	if [ $status != "$want" ] || [ "$(wc -l <"$top/lines")" != 1 ] || ! grep -qF -- "$sentence" "$top/lines"; then
		echo "ha-switch $*: status $status, wanted $want and '$sentence'; it said:" >&2
		cat "$top/err" >&2
		exit 1
	fi
}

refused 2 'give --address and at least one --port'
refused 2 "--address takes an IPv4 address, as in 10.0.0.254, not '10.0.0'" --address=10.0.0
refused 2 '--mac takes the address of one interface' --mac=01:00:00:00:00:00
refused 2 '--mac takes six bytes' --mac=2
refused 2 '--mac takes six bytes' --mac=02:-1:0a:00:00:fe
refused 2 '--mac takes six bytes' '--mac= 2:00:0a:00:00:fe'
refused 2 "--slots takes a whole number from 2 to 65536, not '1'" --slots=1
refused 2 '--queue takes a power of two from' --queue=48
refused 2 '--mark takes none, or two depths' --mark=9,8,1
refused 2 '--fault takes what is as in' --fault=loss
refused 2 '--fault takes what is as in' --fault=loss=2
refused 2 '--cores takes a whole number' --cores=x
refused 2 "'here' is one word too many" "${good[@]}" "$memif" here
refused 1 'eth0: neither a PCI address' "${good[@]}" --port=eth0
refused 1 'no such port: rte_pmd_init_internals(): net_af_packet0: ioctl failed (SIOCGIFINDEX):No such device' "${good[@]}" --port=net_af_packet0,iface=there-is-none
refused 1 'is its driver installed?' "${good[@]}" --port=net_nobody0
refused 1 'processor 1000: this process may not run there' "${good[@]}" "$memif" --cpus=1000
refused 1 'no memory for 100000 packets' "${good[@]}" "$memif" --packets=100000
refused 2 "$top/none: No such file" "${good[@]}" "$memif" --groups="$top/none"
refused 2 '--metrics: ' --address=10.0.0.1 --memory=32 "$memif" --metrics=nowhere

# bad SENTENCE LINE: in a file of groups
bad() {
	printf '# one\n%s\n' "$2" >"$top/groups"
	refused 2 "groups:2: $1" "${good[@]}" "$memif" --groups="$top/groups"
}
bad 'a line begins with group' 'grope 1'
bad 'a line begins with group' 'group 256'
bad 'it has no slots' 'group 1 members 1.1.1.1 1.1.1.2'
bad 'a group has 2 to 32 members' 'group 1 slots 0 16 members 1.1.1.1'
bad 'members: IPv4' 'group 1 slots 0 16 members 1.1.1.1 me'
bad 'frames: old or extended' 'group 1 slots 0 16 frames new members 1.1.1.1 1.1.1.2'
bad 'not understood' 'group 1 slot 0 members 1.1.1.1 1.1.1.2'
printf 'group 1 slots 0 24 members 1.1.1.1 1.1.1.2\n' >"$top/groups"
refused 2 'group 1: the slots of a group must be a power of two' "${good[@]}" "$memif" --groups="$top/groups"
printf 'group 1 slots 0 16 members 1.1.1.1 1.1.1.2\ngroup 2 slots 8 16 members 1.1.1.1 1.1.1.2\n' >"$top/groups"
refused 2 'group 2: another group has some of these slots' "${good[@]}" "$memif" --groups="$top/groups"
# What becomes of the groups is said of those that there were.
! grep -qE 'groups (stay|that can)' "$top/lines" || { echo "at the start: $(cat "$top/lines")" >&2; exit 1; }
printf 'group\n' >"$top/groups"
refused 2 'groups:1: a line begins with group' "${good[@]}" "$memif" --groups="$top/groups"
! grep -qE 'groups (stay|that can)' "$top/lines" || { echo "at the start: $(cat "$top/lines")" >&2; exit 1; }

# ---- SIGHUP: what is wrong with the file, and what has become of the groups ----
printf 'group 1 epoch 1 slots 0 16 members 1.1.1.1 1.1.1.2\n' >"$top/groups"
"$program" "${good[@]}" --idle-us=100 --shared "$memif" --groups="$top/groups" >"$top/out" 2>"$top/err" &
switch=$!
trap 'kill "$switch" 2>/dev/null || true; rm -rf "$top"' EXIT
. "$(dirname "$0")/says.sh"
says 'metrics on port'
printf 'group 1 epoch 2 slots 0 16 members 1.1.1.1 1.1.1.2\ngroup\n' >"$top/groups"
kill -HUP "$switch"
says 'groups:2: a line begins with group'
says '; groups stay as they are'
! grep -q 'group 1 epoch 2' "$top/err" || { echo "a file that cannot be read has changed something" >&2; exit 1; }
# The second cannot be, for it is in the first one's slots: the first and the third are.
printf 'group %s members 1.1.1.1 1.1.1.2\n' '1 epoch 3 slots 0 16' '2 epoch 1 slots 8 16' '3 epoch 1 slots 32 16' >"$top/groups"
kill -HUP "$switch"
says 'group 1 epoch 3:'
says 'group 2: another group has some of these slots; groups that can be are as the file says'
says 'group 3 epoch 1:'
kill "$switch"
wait "$switch"
echo "every wrong call gets its line"
