#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The table of subcommands: help, version, unknown names.
. "$(dirname "$0")/lib.sh"

"$HA" --help >"$TMP/out" || fail "--help"
grep -q '^  perf ' "$TMP/out" || fail "perf is not listed"
"$HA" help | cmp -s - "$TMP/out" || fail "help and --help differ"
"$HA" version | grep -qE '^ha: hawser [0-9.]+( \(g[0-9a-f]+\+?\))?$' || fail "version"
"$HA" --version | grep -q '^ha: ' || fail "--version"
"$HA" >"$TMP/out" 2>"$TMP/err"
[ $? -eq 2 ] || fail "status without a command"
"$HA" nonsense >"$TMP/out" 2>"$TMP/err"
[ $? -eq 2 ] && grep -q "no command 'nonsense'" "$TMP/err" || fail "an unknown command"
finish
