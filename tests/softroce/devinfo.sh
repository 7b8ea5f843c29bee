#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ibv_devinfo and ibv_devices list the devices of SOFTROCE_DEVICES, both ways of running; nonsense is one line.
# Usage: devinfo.sh BUILD_DIR
set -uo pipefail
build=$1
command -v ibv_devinfo >/dev/null || { echo "skipped: ibv_devinfo is not installed"; exit 77; }
SOFTROCE_CONTROL=$(mktemp -d)
export SOFTROCE_CONTROL
trap 'rm -rf "$SOFTROCE_CONTROL"' EXIT
fail() { echo "failed: $1"; echo "$out"; exit 1; }

# A subnet of this run's own: the first address is expected.
subnet=127.60.$(($$ % 250))
export SOFTROCE_DEVICES=$subnet.0/29,storage=$subnet.8/29
for mode in "" --replace; do
	out=$("$build/softroce-run" $mode ibv_devinfo -v 2>&1) || fail "ibv_devinfo $mode"
	for want in 'hca_id:.*soft0' 'hca_id:.*storage' 'PORT_ACTIVE' 'link_layer:.*Ethernet' 'active_mtu:.*4096' \
		'GID\[  0\]:.*::ffff:'$subnet'.1, RoCE v2' 'phys_port_cnt:.*1$' 'atomic_cap:.*ATOMIC_GLOB'; do
		grep -qE "$want" <<<"$out" || fail "ibv_devinfo $mode does not show '$want'"
	done
	out=$("$build/softroce-run" $mode ibv_devices 2>&1) || fail "ibv_devices $mode"
	[ "$(grep -cE '^ +(soft0|storage) ' <<<"$out")" = 2 ] || fail "ibv_devices $mode"
done

export SOFTROCE_DEVICES=no-such-if0,10.255.255.254,$subnet.0/24,10.0.0.0/8
out=$("$build/softroce-run" ibv_devices 2>&1) || fail "nonsense"
grep -q "soft0 (no-such-if0) is skipped: there is no such interface" <<<"$out" || fail "missing interface"
grep -q "soft1 (10.255.255.254) is skipped: no interface of this machine" <<<"$out" || fail "foreign address"
grep -q "'10.0.0.0/8' is skipped: only a loopback subnet" <<<"$out" || fail "foreign subnet"
grep -qE '^ +soft2 ' <<<"$out" || fail "the good one is missing"

out=$("$build/softroce-run" --help) || fail "--help"
grep -q SOFTROCE_DEVICES <<<"$out" || fail "--help says nothing"
out=$("$build/softroce-run" 2>&1) && fail "no program"
out=$("$build/softroce-run" sh -c 'exit 7'); [ $? = 7 ] || fail "exit status"

# A program that dlopens libibverbs.so, as NCCL does, gets the drop-in.
out=$("$build/softroce-run" python3 -c 'import ctypes
verbs = ctypes.CDLL("libibverbs.so")
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
verbs.ibv_get_device_name.restype = ctypes.c_char_p
number = ctypes.c_int()
devices = verbs.ibv_get_device_list(ctypes.byref(number))
print(number.value, verbs.ibv_get_device_name(ctypes.c_void_p(devices[0])).decode())
print([line.split()[-1] for line in open("/proc/self/maps") if "libibverbs" in line][0])' 2>&1) || fail "dlopen"
grep -q '^1 soft2' <<<"$out" && grep -q "/softroce/libibverbs.so.1" <<<"$out" || fail "dlopen finds another library"
echo "devices listed both ways, nonsense explained"
