#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ha switches as a program: over InfiniBand ports of a made-up host, with a stand-in for smpquery; and where nothing can be asked. Argument: ha.
. "$(dirname "$0")/../lib.sh" "$1" none

export HA_NCCL_SYSFS_ROOT=$TMP/root
mkdir -p "$TMP/bin" "$TMP/root"

# port DEVICE PORT LAYER PHYS_STATE
port() {
	mkdir -p "$TMP/root/sys/class/infiniband/$1/ports/$2"
	echo "$3" >"$TMP/root/sys/class/infiniband/$1/ports/$2/link_layer"
	echo "$4" >"$TMP/root/sys/class/infiniband/$1/ports/$2/phys_state"
}

switches() {
	PATH=$TMP/bin:$PATH timeout 800 "$HA" switches "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

switches
[ $STATUS -eq 1 ] && grep -q 'no RDMA device is in /sys/class/infiniband' "$TMP/err" || fail "no device"

port mlx4_0 1 InfiniBand '5: LinkUp'
port mlx4_0 2 InfiniBand '5: LinkUp'
port mlx5_1 1 InfiniBand '3: Disabled'
port mlx5_2 1 InfiniBand '5: LinkUp'
switches
grep -q "^mlx5_2:1  *-  *not asked: the kernel's ib_umad is not there: modprobe ib_umad" "$TMP/out" || fail "without ib_umad"
mkdir "$TMP/root/sys/class/infiniband_mad"
# As infiniband-diags prints it. A directed route leaves by the port that is its first hop: of port 2 it is 0,2.
cat >"$TMP/bin/smpquery" <<'END'
#!/bin/sh
echo "$*" >>"$(dirname "$0")/calls"
case "$*" in
"-C mlx4_0 -P "[12]" -D nodeinfo 0,"[12])
	[ "$4" = "${7#0,}" ] || exit 1
	echo "# Node info: DR path slid 65535; dlid 65535; $7"
	printf '%s\n' NodeType:........................Switch SystemGuid:......................0x0c42a10300a1b2c0 \
		Guid:............................0x0c42a10300a1b2c2 LocalPort:.......................1$4 ;;
"-C mlx4_0 -P "[12]" -D nodedesc "*) echo 'Node Description:....................MF0;leaf1:MQM9700/U1' ;;
*)
	echo "ibwarn: [1] mad_rpc_open_port: can't open UMAD port (mlx5_2:1)" >&2
	exit 1 ;;
esac
END
chmod +x "$TMP/bin/smpquery"
switches --write="$TMP/switches" --json
[ $STATUS -eq 0 ] && [ ! -s "$TMP/err" ] || fail "InfiniBand: $STATUS"
python3 - "$TMP/out" <<'END' || fail "InfiniBand, as JSON"
import json, sys
ports = {p["device"]: p for p in json.load(open(sys.argv[1]))["ports"]}
for n in "1", "2":
    p = ports["mlx4_0:" + n]
    assert p["answer"] == "found" and p["link_layer"] == "InfiniBand" and p["source"] == "smpquery", p
    assert p["switch"] == "guid:0c42a10300a1b2c0" and p["switch_port"] == "1" + n and p["switch_name"] == "MF0;leaf1:MQM9700/U1", p
assert ports["mlx5_1:1"]["answer"] == "none" and ports["mlx5_1:1"]["why"] == "its link is down", ports
assert ports["mlx5_2:1"]["answer"] == "not_asked" and "can't open UMAD port" in ports["mlx5_2:1"]["why"], ports
END
cat >"$TMP/expected" <<'END'
mlx4_0:1 guid:0c42a10300a1b2c0 11 smpquery MF0;leaf1:MQM9700/U1
mlx4_0:2 guid:0c42a10300a1b2c0 12 smpquery MF0;leaf1:MQM9700/U1
mlx5_1:1 - - sysfs -
END
grep -v '^#' "$TMP/switches" | cmp -s - "$TMP/expected" || fail "the file: $(cat "$TMP/switches")"
switches
[ $STATUS -eq 0 ] && grep -q '^mlx4_0:2  *-  *MF0;leaf1:MQM9700/U1 (guid:0c42a10300a1b2c0)  *12  *smpquery$' "$TMP/out" || fail "the table"
grep -q "^mlx5_2:1  *-  *not asked: smpquery: ibwarn: .*can't open UMAD port" "$TMP/out" || fail "the table: not asked"

# nobody can be asked
rm -r "$TMP/root/sys/class/infiniband/mlx4_0" "$TMP/root/sys/class/infiniband/mlx5_1" "$TMP/switches"
switches --write="$TMP/switches"
[ $STATUS -eq 1 ] && grep -q 'no port could be asked; install lldpd, or infiniband-diags' "$TMP/err" || fail "nobody"
grep -qv '^#' "$TMP/switches" && fail "nobody, and yet a port is in the file"
switches nonsense
[ $STATUS -eq 2 ] || fail "an operand"
switches --help
[ $STATUS -eq 0 ] && grep -q '^usage: ha switches' "$TMP/out" || fail "--help"
exit $FAILED
