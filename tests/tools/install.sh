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
devices=$(env -u LD_PRELOAD "$prefix/bin/softroce-run" ibv_devices)
grep -q soft0 <<<"$devices" || { echo "softroce-run shows no device: $devices"; exit 1; }
shown=$("$prefix/bin/ha" --version)
[[ $shown =~ ^ha:\ hawser\ [0-9.]+(\ \(g[0-9a-f]+\+?\))?$ ]] || { echo "ha --version says: $shown"; exit 1; }
uninstall() { # BUILD_DIR PREFIX
	cmake -DMANIFEST="$1/install_manifest.txt" -DPREFIX="$2" -P "$here/../../scripts/uninstall.cmake"
}
if uninstall "$1" "$prefix/elsewhere" >/dev/null 2>&1; then
	echo "another PREFIX was taken"
	exit 1
fi
rm "$prefix/agent.c" "$prefix/agent"
uninstall "$1" "$prefix" >/dev/null
left=$(find "$prefix" ! -type d)
[ "$left" = "$prefix/bin/another-program" ] || { echo "make uninstall leaves: $left"; exit 1; }
left=$(find "$prefix" -type d -path '*hawser*')
[ -z "$left" ] || { echo "make uninstall leaves folders: $left"; exit 1; }
