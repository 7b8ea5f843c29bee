#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `make install` puts into a prefix works there: ha finds the plugin, the plugin the software NIC, softroce-run its library, and
# whoever writes an agent or a plugin of his own the interface between the two.
# What `make uninstall` leaves is what was there before.
# Usage: install.sh BUILD_DIR
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
mkdir -p "$prefix/bin"
echo theirs >"$prefix/bin/another-program"
cmake --install "$1" --prefix "$prefix" >/dev/null
cd /
# The line for /etc/ld.so.conf.d makes the loader find it, under NCCL's name and RCCL's.
PATH=$PATH:/sbin:/usr/sbin
ldconfig -X -f "$prefix/share/hawser/ld.so.conf" -C "$prefix/cache"
known=$(ldconfig -C "$prefix/cache" -p)
rm "$prefix/cache"
for name in nccl rccl; do
	grep -q "lib$name-net-ha.so .*=> $prefix/lib/lib$name-net-ha.so" <<<"$known" || { echo "ld.so.conf leads to no lib$name-net-ha.so: $known"; exit 1; }
	[ "$prefix/lib/hawser/lib$name-net.so" -ef "$prefix/lib/libnccl-net-ha.so" ] || { echo "hawser/lib$name-net.so is not the plugin"; exit 1; }
done
out=$(HA_NCCL_VERBS=soft "$prefix/bin/ha" perf pingpong --ranks 2 -b 8 -e 8 -n 20)
grep -q "plugin: HA, .*$prefix/lib/libnccl-net-ha.so" <<<"$out" || { echo "another plugin was taken: $out"; exit 1; }
grep -q "Out of bounds values : 0 OK" <<<"$out"
cat >"$prefix/agent.c" <<'EOF'
#include <hawser/mpib_agent_iface.h>
#include <stdio.h>
int main(void)
{
	static struct mpib_hint_shm shm;
	struct mpib_hint_entry e;
	int good;

	mpib_hint_put(&shm.entries[255], 768, 1, 2);
	good = mpib_hint_get(&shm.entries[255], &e);
	printf("%zu %d %u\n", sizeof(shm), good, e.sup_bw);
	return 0;
}
EOF
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$prefix/include" -o "$prefix/agent" "$prefix/agent.c"
[ "$("$prefix/agent")" = "4112 1 768" ] || { echo "mpib_agent_iface.h as installed: $("$prefix/agent")"; exit 1; }
# Whoever writes kernels finds the library for GPU threads, by pkg-config and by CMake.
cat >"$prefix/user.c" <<'EOF'
#include "gpu/device/hawser_gpu.h"
#include "gpu/host/host.h"
int main(void)
{
	struct ha_gpu_host_config config = { 0 };
	struct ha_gpu_host *host = 0;

	return config.heap_bytes || !ha_gpu_host_open || host;
}
EOF
cat >"$prefix/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(hawser-gpu REQUIRED)
add_executable(user user.c)
target_link_libraries(user hawser::gpu)
EOF
flags=$(PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig pkg-config --cflags --libs hawser-gpu)
# shellcheck disable=SC2086
${CC:-cc} -o "$prefix/user" "$prefix/user.c" $flags
"$prefix/user" || { echo "what was linked by pkg-config does not run"; exit 1; }
{ cmake -S "$prefix" -B "$prefix/user-build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$prefix/user-build"; } >"$prefix/user.log" 2>&1 ||
	{ cat "$prefix/user.log"; exit 1; }
"$prefix/user-build/user" || { echo "what was linked by CMake does not run"; exit 1; }
devices=$(env -u LD_PRELOAD "$prefix/bin/softroce-run" ibv_devices)
grep -q soft0 <<<"$devices" || { echo "softroce-run shows no device: $devices"; exit 1; }
shown=$("$prefix/bin/ha" --version)
[[ $shown =~ ^ha:\ hawser\ [0-9.]+(\ \(g[0-9a-f]+\+?\))?$ ]] || { echo "ha --version says: $shown"; exit 1; }
# netccl has the same version, without torch being there.
found=$(find "$prefix/lib" -path '*/netccl/version.py')
if [ -n "$found" ]; then
	netccl=$(python3 -B -c 'import runpy, sys; print(runpy.run_path(sys.argv[1])["VERSION"])' "$found")
	[ "${netccl%% *}" = "$(cut -d' ' -f3 <<<"$shown")" ] || { echo "ha --version says: $shown; netccl: $netccl"; exit 1; }
fi
for page in man1/ha.1 man1/ha-perf.1 man8/ha-agent.8; do
	[ -s "$prefix/share/man/$page" ] || { echo "no manual page $page"; exit 1; }
done
[ -s "$prefix/share/bash-completion/completions/ha" ] || { echo "no completion"; exit 1; }
uninstall() { # BUILD_DIR PREFIX
	cmake -DMANIFEST="$1/install_manifest.txt" -DPREFIX="$2" -P "$here/../../scripts/uninstall.cmake"
}
[ "$(sh -c ". '$prefix/etc/hawser/env.sh'; echo \$NCCL_NET_PLUGIN \$NCCL_NET")" = "ha HA" ] || { echo "etc/hawser/env.sh sets something else"; exit 1; }
# With a prefix of the system it lies in /etc, and what an administrator has changed there stays.
environment() { # BUILD_DIR PREFIX: that part of the installation
	DESTDIR=$prefix/root cmake -DCMAKE_INSTALL_PREFIX="$2" -P "$1/plugin/nccl/install_env.cmake" >/dev/null
}
environment "$1" /usr/local
[ -s "$prefix/root/etc/hawser/env.sh" ] || { echo "no /etc/hawser/env.sh"; exit 1; }
echo "export NCCL_IB_HCA=mlx5_1" >>"$prefix/root/etc/hawser/env.sh"
environment "$1" /usr/local
grep -q mlx5_1 "$prefix/root/etc/hawser/env.sh" || { echo "a changed /etc/hawser/env.sh was overwritten"; exit 1; }
rm -r "$prefix/root"
if uninstall "$1" "$prefix/elsewhere" >/dev/null 2>&1; then
	echo "another PREFIX was taken"
	exit 1
fi
rm -r "$prefix"/agent.c "$prefix"/agent "$prefix"/user* "$prefix"/CMakeLists.txt
uninstall "$1" "$prefix" >/dev/null
left=$(find "$prefix" ! -type d)
[ "$left" = "$prefix/bin/another-program" ] || { echo "make uninstall leaves: $left"; exit 1; }
left=$(find "$prefix" -type d -path '*hawser*')
[ -z "$left" ] || { echo "make uninstall leaves folders: $left"; exit 1; }
