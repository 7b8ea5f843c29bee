# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tests of the packages share, sourced: begin PROGRAM..., bare_open, inside COMMAND..., check_installed, check_upgrade,
# check_removed, and bare_close on exit. $root is the source, $work a folder of the test's own, $bare in it a bare Debian 12 to install
# into; the words of settings go into the environment of what runs inside.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
version=$(sed -n 's/^project(hawser VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
settings=(A=)

skip() { echo "skipped: $1"; exit 77; }
fail() { echo "$1" >&2; exit 1; }

begin() { # PROGRAM...: what the test cannot run without
	local program
	[ "$(id -u)" = 0 ] || skip "not root: no bare root can be entered"
	for program in debootstrap "$@"; do
		command -v "$program" >/dev/null || skip "no $program: scripts/install-deps test long"
	done
	tarball=$("$root/scripts/bare-root") || skip "no bare Debian: scripts/bare-root --fetch makes one"
	work=$(mktemp -d)
	bare=$work/root
	trap bare_close EXIT
}

bare_open() {
	local node
	mkdir "$bare"
	tar -xf "$tarball" -C "$bare"
	mkdir -p "$bare/dev" "$bare/packages"
	mount -t tmpfs -o mode=755 tmpfs "$bare/dev"
	for node in null zero urandom random tty; do
		touch "$bare/dev/$node" && mount --bind "/dev/$node" "$bare/dev/$node"
	done
	mkdir -m 1777 "$bare/dev/shm"
	mount -t tmpfs -o mode=1777 tmpfs "$bare/dev/shm"
	mount -t proc proc "$bare/proc"
}

bare_close() {
	umount -l "$bare/dev/shm" "$bare/dev" "$bare/proc" 2>/dev/null || true
	rm -rf --one-file-system "$work"
}

inside() {
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${settings[@]}" \
		chroot "$bare" "$@"
}

# Without the packagers' own books, what ldconfig writes and what python3 compiles of its own modules.
files() {
	(cd "$bare" && find . -xdev \( -path ./packages -o -path ./proc -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/lib/rpm \
		-o -path ./var/log -o -path ./var/cache -o -path './usr/lib/python3.*' \) -prune -o -print | grep -v '^./etc/ld.so.cache$' | sort)
}

# What must work wherever the packages were installed; the argument is the library folder below /usr.
check_installed() {
	local name program
	for name in nccl rccl; do # each asks the loader by its own name, and for the second one when it has forgotten the first
		inside python3 -c "import ctypes; ctypes.CDLL('lib$name-net-ha.so').ncclNetPlugin_v8" || fail "no lib$name-net-ha.so is found"
		inside test -e "/usr/$1/hawser/lib$name-net.so" || fail "no hawser/lib$name-net.so"
	done
	inside ha --version | grep -q "hawser $version" || fail "ha --version: $(inside ha --version 2>&1)"
	settings=(HA_NCCL_VERBS=soft)
	inside ha perf sendrecv --ranks 2 -b 64K -e 64K --duration 3s --at 1s 'ha cut soft0' --at 2s 'ha heal soft0' >"$work/perf" 2>&1 ||
		fail "ha perf: $(tail -5 "$work/perf")"
	grep -q "plugin: HA, .*/usr/$1/libnccl-net-ha.so" "$work/perf" || fail "ha perf has not taken the package's plugin: $(head -3 "$work/perf")"
	grep -q 'Out of bounds values : 0 OK' "$work/perf" || fail "ha perf: wrong elements"
	inside ha topo | grep -q 'soft0:1 <=> standby soft1:1' || fail "ha topo"
	inside sh -c '. /etc/hawser/env.sh; ulimit -n 8192; exec ha doctor' >"$work/doctor" || fail "ha doctor: $(cat "$work/doctor")"
	grep -q '^0 errors' "$work/doctor" || fail "ha doctor: $(cat "$work/doctor")"
	inside softroce-run ha topo | grep -q soft0 || fail "softroce-run"
	inside hawser-exporter --once --textfile /tmp/out.prom --journal none && grep -q hawser_exporter_build_info "$bare/tmp/out.prom" ||
		fail "hawser-exporter"
	rm -f "$bare/tmp/out.prom"
	for program in ha-agent ha-controller ha-switch ha-switch-xdp ha-backend ha-ina hawser-exporter; do
		inside $program --version | grep -q "hawser $version" || fail "$program --version"
	done
	inside python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("netccl"))' || fail "netccl is not found"
}

# An upgrade: systemd, in whose place a program notes what it is asked, reads the units of three packages again, and nothing is stopped
# or started.
check_upgrade() { # COMMAND...: installs the packages once more
	mkdir -p "$bare/run/systemd/system"
	# shellcheck disable=SC2016
	printf '#!/bin/sh\necho "$*" >>/packages/asked\n' >"$bare/usr/bin/systemctl"
	chmod 755 "$bare/usr/bin/systemctl"
	"$@" >"$work/upgrade" 2>&1 || fail "$*: $(tail -3 "$work/upgrade")"
	[ "$(cat "$bare/packages/asked" 2>/dev/null)" = "$(printf 'daemon-reload\n%.0s' 1 2 3)" ] ||
		fail "an upgrade asks systemd for: $(cat "$bare/packages/asked" 2>&1)"
	rm -rf "$bare/usr/bin/systemctl" "$bare/run/systemd"
}

# What has been removed leaves nothing, but the pages of the jobs that ran. "$work/before" is what files said before the installation.
check_removed() {
	rm -rf "$bare"/dev/shm/*
	files >"$work/after"
	diff "$work/before" "$work/after" >"$work/left" || fail "removal leaves: $(cat "$work/left")"
}
