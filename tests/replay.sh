#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A fuzz harness (tests/replay.c) on its first inputs and on those worth keeping. Usage: replay.sh PROGRAM HARNESS
set -eu
here=$(realpath "$(dirname "$0")")
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
"$here/../scripts/fuzz-seeds" "$2" "$TMP/seeds"
folders=("$TMP/seeds")
[ ! -d "$here/corpus/$2" ] || folders+=("$here/corpus/$2")
cd "$TMP"
if ! "$1" "${folders[@]}"; then
	echo "the input that it had in hand, as base64:"
	base64 -w0 input
	exit 1
fi
