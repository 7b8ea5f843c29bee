#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `make install` puts into a prefix works there: ha finds the plugin, the plugin the software NIC, softroce-run its library.
# Usage: install.sh BUILD_DIR
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$1" --prefix "$prefix" >/dev/null
cd /
out=$(HA_NCCL_VERBS=soft "$prefix/bin/ha" perf pingpong --ranks 2 -b 8 -e 8 -n 20)
grep -q "plugin: HA, .*$prefix/lib/libnccl-net-ha.so" <<<"$out" || { echo "another plugin was taken: $out"; exit 1; }
grep -q "Out of bounds values : 0 OK" <<<"$out"
devices=$(env -u LD_PRELOAD "$prefix/bin/softroce-run" ibv_devices)
grep -q soft0 <<<"$devices" || { echo "softroce-run shows no device: $devices"; exit 1; }
