#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Where a rank cannot be forked ha gpu-moe says so, in one line. test_moe_no_process.sh PATH-OF-HA
set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$1" "$dir/ha" && chmod 755 "$dir" "$dir/ha"
as=
[ "$(id -u)" = 0 ] && as="setpriv --reuid=65534 --regid=65534 --clear-groups" # no limit holds for root
# shellcheck disable=SC2086,SC2016
$as bash -c 'ulimit -u 1 && exec "$1" gpu-moe --part quiet --launches 1 --tokens 1 --hidden 8' bash "$dir/ha" >"$dir/out" 2>"$dir/err"
status=$?
[ $status = 1 ] && [ "$(wc -l <"$dir/err")" = 1 ] && grep -q "no process for rank 0: .*ulimit -u" "$dir/err" && exit 0
echo "status $status, said:"
cat "$dir/out" "$dir/err"
exit 1
