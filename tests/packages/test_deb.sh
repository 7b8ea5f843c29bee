#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The Debian packages: lintian finds no error, two builds have the same bits, and in a bare Debian 12 they are installed, used and
# removed without a trace. Arguments: the packages, or none: then they are built, twice.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/bare.sh"
begin dpkg-buildpackage dh lintian systemd-analyze ibv_asyncwatch
watcher=
cleanup() {
	[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true
	bare_close
}
trap cleanup EXIT

# ---- the packages ----

if [ $# = 0 ]; then
	# No compiler's cache: what comes out of it is the same by itself, and its paths need not be the compiler's.
	unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
	"$root/scripts/deb" "$work/one" >/dev/null
	# Another folder, time zone, language, mask and number of jobs.
	(umask 002 && TZ=Asia/Tokyo LC_ALL=C DEB_BUILD_OPTIONS=parallel=$(($(nproc) + 1)) \
		"$root/scripts/deb" "$work/another/folder" >/dev/null)
	for deb in "$work"/one/*.deb; do
		cmp "$deb" "$work/another/folder/$(basename "$deb")" || fail "two builds of $(basename "$deb") differ"
	done
	set -- "$work"/one/*.deb
fi
for package in libnccl-net-ha hawser-tools hawser-softroce hawser-softcuda hawser-agent hawser-ina libhawser-gpu-dev; do
	ls "$@" | grep -q "/${package}_${version}_" || fail "no package $package"
done
lintian --fail-on error --suppress-tags bad-distribution-in-changes-file --allow-root "$@" >"$work/lintian" 2>&1 ||
	fail "lintian: $(grep -E '^E:' "$work/lintian" || tail -3 "$work/lintian")"
dpkg-deb -x "$(ls "$@" | grep libnccl-net-ha)" "$work/plugin"
"$root/tests/plugin/nccl/glibc_floor.sh" "$work/plugin/usr/lib/libnccl-net-ha.so"

# The library for GPU threads: a program outside of the tree compiles and links with nothing but the package.
dpkg-deb -x "$(ls "$@" | grep libhawser-gpu-dev)" "$work/gpu"
cat >"$work/user.c" <<'END'
#include "gpu/host/host.h"
#include <stdio.h>
int main(void)
{
	printf("%p\n", (void *)(size_t)ha_gpu_host_open);
	return 0;
}
END
flags=$(PKG_CONFIG_LIBDIR=$work/gpu/usr/lib/pkgconfig pkg-config --define-variable=prefix="$work/gpu/usr" --cflags --libs hawser-gpu)
# shellcheck disable=SC2086
cc -o "$work/user" "$work/user.c" $flags || fail "libhawser-gpu-dev is not enough to compile with"
"$work/user" >/dev/null || fail "what was linked with libhawser-gpu.a does not run"

# The software NIC by itself: programs of Debian find it and receive its events, `ha soft` lists it.
nic=$work/nic
for package in hawser-softroce hawser-tools; do
	dpkg-deb -x "$(ls "$@" | grep "/${package}_")" "$nic"
done
mkdir -m 700 "$work/control"
export SOFTROCE_CONTROL=$work/control SOFTROCE_DEVICES=left=127.119.0.0/24,127.119.1.0/24
devices=$("$nic/usr/bin/softroce-run" ibv_devinfo 2>&1) || fail "ibv_devinfo: $devices"
grep -q '^hca_id:.*left' <<<"$devices" && grep -q '^hca_id:.*soft1' <<<"$devices" && grep -q 'state:.*PORT_ACTIVE' <<<"$devices" ||
	fail "ibv_devinfo: $devices"
"$nic/usr/bin/softroce-run" ibv_asyncwatch -d left >"$work/watch" 2>&1 &
watcher=$!
await() { # PATTERN: until ibv_asyncwatch has said it
	local i
	for i in $(seq 1200); do
		! grep -q "$1" "$work/watch" || return 0
		sleep 0.05
	done
	fail "ibv_asyncwatch did not say '$1': $(cat "$work/watch")"
}
await 'async event FD'
"$nic/usr/bin/ha" soft >"$work/soft" || fail "ha soft: $(cat "$work/soft")"
grep -q '^left@127\.119\.0\..*: up$' "$work/soft" || fail "ha soft does not list it: $(cat "$work/soft")"
"$nic/usr/bin/ha" cut left >/dev/null || fail "ha cut"
await IBV_EVENT_PORT_ERR
"$nic/usr/bin/ha" heal left >/dev/null || fail "ha heal"
await IBV_EVENT_PORT_ACTIVE
kill $watcher
wait $watcher 2>/dev/null || true
watcher=
unset SOFTROCE_CONTROL SOFTROCE_DEVICES
for page in "$nic"/usr/share/man/man*/*.gz; do
	warnings=$(zcat "$page" | groff -man -Tutf8 -ww 2>&1 >/dev/null) || true
	[ -z "$warnings" ] || fail "$(basename "$page"): $warnings"
done

# ---- in a bare Debian ----

bare_open
cp "$@" "$bare/packages"

files >"$work/before"
inside sh -c 'dpkg -i /packages/*.deb' >"$work/install" 2>&1 || fail "dpkg -i: $(grep -E 'depends on|error' "$work/install")"
check_installed lib
ls "$bare"/usr/lib/python3/dist-packages/netccl/__pycache__/*.pyc >/dev/null || fail "netccl was not compiled when it was installed"

check_upgrade inside sh -c 'dpkg -i /packages/*.deb'

# systemd reads each unit: no setting that it does not know, no program that is not there.
units=()
for unit in ha-{agent,controller,switch,switch-xdp,backend}.service hawser-exporter.service hawser-switches.{service,timer}; do
	file=$(find "$bare/lib/systemd/system/" -name "$unit")
	[ -n "$file" ] || fail "no $unit"
	units+=("${file#"$bare"}")
done
# The bare root has no systemd: the targets that the units name are this machine's.
mkdir -p "$bare/run/systemd/system"
cp /lib/systemd/system/*.target "$bare/run/systemd/system"
verdict=$(systemd-analyze verify --root="$bare" --man=no "${units[@]}" 2>&1) || fail "systemd-analyze verify: $verdict"
[ -z "$verdict" ] || fail "systemd-analyze verify: $verdict"
rm -rf "$bare/run/systemd"

# What systemd makes for services that write something (StateDirectory= with DynamicUser=).
for service in hawser-exporter ha-controller; do
	mkdir -p "$bare/var/lib/private/$service"
	echo 1 >"$bare/var/lib/private/$service/state"
	ln -s "private/$service" "$bare/var/lib/$service"
done
names=$(for deb in "$@"; do dpkg-deb -f "$deb" Package; done)
# shellcheck disable=SC2086
inside dpkg --purge $names >"$work/remove" 2>&1 || fail "dpkg --purge: $(tail -3 "$work/remove")"
rmdir "$bare/var/lib/private" || fail "a purge leaves $(ls "$bare/var/lib/private") in /var/lib/private"
check_removed
echo "$(echo $names | wc -w) packages: no error by lintian ($(grep -c '^W:' "$work/lintian" || true) warnings), installed, used and removed"
