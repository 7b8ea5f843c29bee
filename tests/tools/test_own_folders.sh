#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a test makes lies in folders of its own, where no other process of the user looks: `ha cut soft0` in another window must
# not reach it. First what ctest gives every test, then what lib.sh gives those of `ha perf`. Arguments: ha, hawser's plugin.
for folder in "${SOFTROCE_CONTROL:-none}" "${HA_NCCL_STATUS_DIR:-none}"; do
	[[ $folder == /dev/shm/hawser-tests-* ]] || { echo "FAIL: ctest gives no folder of the tests' own: $folder"; exit 1; }
done
"$1" soft >/dev/null || { echo "FAIL: $SOFTROCE_CONTROL is no folder for software NICs"; exit 1; }

foreign=$(mktemp -d)
export SOFTROCE_CONTROL=$foreign/control HA_NCCL_STATUS_DIR=$foreign/status
mkdir -m 700 "$SOFTROCE_CONTROL" "$HA_NCCL_STATUS_DIR"
. "$(dirname "$0")/lib.sh"
trap 'rm -rf "$TMP" "$foreign"' EXIT
mkdir "$HA_NCCL_STATUS_DIR"
touch -d 2000-01-01 "$foreign"/* "$SOFTROCE_CONTROL" "$HA_NCCL_STATUS_DIR"

# used FOLDER: how many folders in it something was made in, or removed from
used() {
	find "$1" -mindepth 1 -maxdepth 1 -type d -newermt 2001-01-01 | wc -l
}
export HA_NCCL_VERBS=soft SOFTROCE_DEVICES=127.173.$(($$ % 250)).0/24,127.174.$(($$ % 250)).0/24
clean 1 sendrecv --ranks 2 -b 8 -e 8 -n 2
[ "$(used "$TMP")" -eq 2 ] || fail "the run has no pages: nothing is shown"
[ "$(used "$foreign")" -eq 0 ] || fail "the run made pages in a foreign folder"
finish
