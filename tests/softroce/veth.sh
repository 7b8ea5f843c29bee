# SPDX-License-Identifier: BSD-3-Clause
# Sourced, with $build set. Two network namespaces joined by a veth pair, both with a software NIC on it, gone at exit:
#
#	ns $a: va 10.99.0.1/24  ------  vb 10.99.0.2/24 :ns $b
#
# in_a, in_b PROGRAM...: run it there on the software NIC. $log: a scratch file. fail TEXT: say so and end.
a=softroce-a-$$ b=softroce-b-$$
command -v ip >/dev/null || { echo "skipped: ip is not installed"; exit 77; }
ip netns add "$a" 2>/dev/null || { echo "skipped: network namespaces need root"; exit 77; }
ip netns exec "$a" true || { ip netns del "$a"; echo "skipped: this root directory is no mount point, or mounting is forbidden"; exit 77; }
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
in_a() { ip netns exec "$a" env SOFTROCE_DEVICES=va "$build/softroce-run" "$@"; }
in_b() { ip netns exec "$b" env SOFTROCE_DEVICES=vb "$build/softroce-run" "$@"; }

ip netns add "$b"
ip link add va netns "$a" type veth peer name vb netns "$b" || { echo "skipped: no veth in this kernel"; exit 77; }
ip -n "$a" addr add 10.99.0.1/24 dev va
ip -n "$b" addr add 10.99.0.2/24 dev vb
for n in "$a:va" "$b:vb"; do
	ip -n "${n%:*}" link set lo up
	ip -n "${n%:*}" link set "${n#*:}" mtu 2200 up
done
# Link-local addresses cannot be used before they are known to be unique.
for _ in $(seq 100); do
	[ -n "$(ip -n "$a" -6 addr show dev va -tentative scope link)$(ip -n "$b" -6 addr show dev vb tentative)" ] &&
		[ -z "$(ip -n "$a" -6 addr show dev va tentative)$(ip -n "$b" -6 addr show dev vb tentative)" ] && break
	sleep 0.05
done
