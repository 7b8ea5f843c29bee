#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Under softroce-run, with no other setting, the plugin and `ha` find the software NIC where NCCL's own transport finds it.
# Arguments: ha, the plugin, softroce-run.
. "$(dirname "$0")/lib.sh"
RUN=$3
unset HA_NCCL_VERBS
export SOFTROCE_DEVICES="${SOFTROCE_DEVICES:-127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24}"

"$RUN" --version | grep -qE '^softroce-run: hawser [0-9.]+( \(g[0-9a-f]+\+?\))?$' || fail "softroce-run --version says $("$RUN" --version)"
for how in "" --replace; do
	timeout 800 "$RUN" $how "$HA" topo >"$TMP/out" 2>"$TMP/err" || fail "softroce-run $how ha topo finds nothing"
	grep -q 'soft0:1  active' "$TMP/out" || fail "softroce-run $how ha topo does not list soft0"
	timeout 800 "$RUN" $how "$HA" perf allreduce --plugin "$PLUGIN" --ranks 2 -b 8 -e 64K -f 64 -n 2 >"$TMP/out" 2>"$TMP/err" ||
		fail "softroce-run $how ha perf"
	grep -q '^# Out of bounds values : 0 OK$' "$TMP/out" || fail "softroce-run $how ha perf: no clean footer"
done
# In a path with spaces; one with a colon is refused, for the loader cannot take it.
for name in 'a path with  spaces' 'a:colon'; do
	mkdir -p "$TMP/$name/softroce/dlopen"
	cp "$RUN" "$TMP/$name/"
	cp -a "$(dirname "$RUN")"/softroce/lib*.so* "$TMP/$name/softroce/"
	cp -a "$(dirname "$RUN")"/softroce/dlopen/* "$TMP/$name/softroce/dlopen/"
	[ ! -e "$(dirname "$RUN")/softroce/sanitizer" ] || cp "$(dirname "$RUN")/softroce/sanitizer" "$TMP/$name/softroce/"
done
for how in "" --replace; do
	"$TMP/a path with  spaces/softroce-run" $how "$HA" topo >"$TMP/out" 2>"$TMP/err" || fail "softroce-run $how in a path with spaces"
	grep -q 'soft0:1  active' "$TMP/out" || fail "softroce-run $how in a path with spaces does not list soft0"
	"$TMP/a path with  spaces/softroce-run" $how grep -c 'spaces/softroce/lib' /proc/self/maps >"$TMP/out" 2>"$TMP/err"
	[ "$how" ] || [ "$(cat "$TMP/out")" -gt 0 ] || fail "the libraries beside it are not the ones loaded"
	grep -q 'cannot be preloaded' "$TMP/err" && fail "the loader refuses the path"
done
"$TMP/a:colon/softroce-run" true >"$TMP/out" 2>"$TMP/err"
[ $? -eq 1 ] && grep -q "cannot stand in LD_LIBRARY_PATH" "$TMP/err" || fail "a path with a colon"
# Where NCCL's own transport looks for the NICs' cards. What Python itself never frees is not counted.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
"$RUN" python3 -c '
import ctypes, os
libc = ctypes.CDLL(None)
libc.realpath.restype = ctypes.c_char_p
libc.realpath.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
for name in "soft0", "soft1":
    print((libc.realpath(b"/sys/class/infiniband/" + name.encode() + b"/device", None) or b"none").decode())
' >"$TMP/out" 2>"$TMP/err" || fail "realpath"
[ "$(sed 's|.*/pci/||' "$TMP/out" | tr '\n' ' ')" = "ffff:01:00.0 ffff:02:00.0 " ] || fail "the places of the software NICs"
finish
