#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The packet tests in ina/p4/vectors are what the slot core says today, all of them and no other.
# Arguments: the ina-vectors program, the folder.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" stf "$dir"
diff -r -x README.md "$2" "$dir" >/dev/null || {
	diff -rq -x README.md "$2" "$dir" | head
	echo "the slot core has changed: look whether it should have, then: $(basename "$1") stf ina/p4/vectors"
	exit 1
}
echo "$(find "$dir" -name '*.stf' | wc -l) files, $(cat "$dir"/*.stf | grep -c '^packet') packets in, $(cat "$dir"/*.stf | grep -c '^expect') out"
