#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha topo` over the software NICs, as a program: text, JSON, options. Argument: ha.
set -euo pipefail
ha=$1
export HA_NCCL_VERBS=soft LC_ALL=C.UTF-8

fail() { echo "$1" >&2; exit 1; }
has() { grep -qF -- "$2" <<<"$1" || fail "'$2' is not in: $1"; }

text=$("$ha" topo)
has "$text" "2 active ports from "
has "$text" "no PCI device: software NICs"
has "$text" "├─ [0] soft0:1  active"
has "$text" "└─ [1] soft1:1  active"
has "$text" "soft0:1 <=> standby soft1:1"
has "$text" "soft1:1 <=> standby soft0:1"
has "$text" "standby order: what failover"
has "$(LC_ALL=C "$ha" topo)" '`- [1] soft1:1  active'
has "$("$ha" topo --verbose)" "limits"
has "$(NCCL_IB_HCA==soft1 "$ha" topo)" "soft1:1 no standby: no other port of its link layer is up"
"$ha" topo --json | python3 -c '
import json, sys
t = json.load(sys.stdin)
assert t["active"] == 2 and [p["device"] for p in t["ports"]] == ["soft0:1", "soft1:1"], t
assert [(s["device"], s["pair"], [o["device"] for o in s["order"]]) for s in t["standby"]] == [
    ("soft0:1", True, ["soft1:1"]), ("soft1:1", True, ["soft0:1"])], t
'
# The file of `ha switches`: what each port hangs on, and what that protects against.
has "$("$ha" topo)" "leaf switches are not known: neither NCCL_IB_HCA nor HA_NCCL_SWITCHES names that of soft0:1"
switches=$(mktemp)
trap 'rm -f "$switches"' EXIT
printf '# hawser switches 1\nsoft0:1 mac:1 swp1 lldpd leaf1\nsoft1:1 mac:2 swp7 lldpd leaf2\n' >"$switches"
text=$(HA_NCCL_SWITCHES=$switches "$ha" topo -v)
has "$text" "soft0:1 <=> standby soft1:1 (across the system, another leaf switch)"
has "$text" "protection, RoCE: against the loss of a NIC or a leaf switch;"
has "$text" "switch   leaf2 (mac:2), its port swp7, by lldpd"
sed -i s/mac:2/mac:1/ "$switches"
has "$(HA_NCCL_SWITCHES=$switches "$ha" topo)" "NOT of a leaf switch: no standby avoids leaf1 (mac:1), which all ports are on"
has "$(HA_NCCL_SWITCHES=$switches "$ha" doctor 2>&1)" "standby.switch soft0:1: its standby soft1:1 hangs on the same leaf switch leaf1 (mac:1)"
chmod 666 "$switches"
has "$(HA_NCCL_SWITCHES=$switches "$ha" topo 2>&1)" "is not read: others may write to it"
has "$(HA_NCCL_SWITCHES=$switches "$ha" topo -v 2>&1)" 'switch   not in the file of `ha switches` (HA_NCCL_SWITCHES)'

"$ha" topo --help | grep -q "usage: ha topo" || fail "no help"
for bad in --nonsense more; do
	rc=0; "$ha" topo "$bad" 2>/dev/null || rc=$?
	[ "$rc" = 2 ] || fail "ha topo $bad ends with $rc"
done
rc=0; NCCL_IB_HCA=none "$ha" topo >/dev/null 2>&1 || rc=$?
[ "$rc" = 1 ] || fail "no device: ends with $rc"

# What is not shown, and what to do: NCCL_IB_HCA fits none, NCCL_IB_DISABLE hides all, SOFTROCE_DEVICES names nothing.
says() { # WORDS SETTING
	rc=0
	out=$(env "$2" "$ha" topo 2>&1) || rc=$?
	[ "$rc" = 1 ] || fail "$2: ends with $rc"
	has "$out" "$1"
}
says 'NCCL_IB_HCA=mlx5 leaves none of the 2 devices (soft0, soft1); correct or unset it' NCCL_IB_HCA=mlx5
says 'NCCL_IB_DISABLE=1 hides every RDMA device; unset it' NCCL_IB_DISABLE=1
says 'SOFTROCE_DEVICES must name a loopback subnet, or an address or an interface' SOFTROCE_DEVICES=foo
