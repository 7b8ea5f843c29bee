# SPDX-License-Identifier: BSD-3-Clause
# Sourced, with $build set. Two network namespaces joined by a veth pair, both with a software NIC on it, gone at exit:
#
#	ns $a: va 10.99.0.1/24  ------  vb 10.99.0.2/24 :ns $b
#
# in_a, in_b PROGRAM...: run it there on the software NIC. $log: a scratch file. fail TEXT: say so and end.
. "$(dirname "${BASH_SOURCE[0]}")/../netns/names.sh"
a=softroce-a-$$ b=softroce-b-$$
command -v ip >/dev/null || { echo "skipped: ip is not installed"; exit 77; }
ip netns add "$a" 2>/dev/null || { echo "skipped: network namespaces need root"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL
log=$SOFTROCE_CONTROL/log
finish() {
	[ -z "${watcher:-}" ] || kill "$watcher" 2>/dev/null
	ip netns del "$a" 2>/dev/null
	ip netns del "$b" 2>/dev/null
	rm -rf "$SOFTROCE_CONTROL"
}
trap finish EXIT
fail() { echo "failed: $1"; cat "$log" 2>/dev/null; exit 1; }
in_a() { "$inside" "$a" env SOFTROCE_DEVICES=va "$build/softroce-run" "$@"; }
in_b() { "$inside" "$b" env SOFTROCE_DEVICES=vb "$build/softroce-run" "$@"; }

ip netns add "$b"
ip link add va netns "$a" type veth peer name vb netns "$b" || { echo "skipped: no veth in this kernel"; exit 77; }
ip_in "$a" addr add 10.99.0.1/24 dev va
ip_in "$b" addr add 10.99.0.2/24 dev vb
for n in "$a:va" "$b:vb"; do
	ip_in "${n%:*}" link set lo up
	ip_in "${n%:*}" link set "${n#*:}" mtu 2200 up
done
# Link-local addresses cannot be used before they are known to be unique.
for _ in $(seq 600); do
	[ -n "$(ip_in "$a" -6 addr show dev va -tentative scope link)$(ip_in "$b" -6 addr show dev vb tentative)" ] &&
		[ -z "$(ip_in "$a" -6 addr show dev va tentative)$(ip_in "$b" -6 addr show dev vb tentative)" ] && break
	sleep 0.05
done
