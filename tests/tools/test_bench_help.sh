#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every Python program of bench/ answers --help, and measures nothing for an option that it does not know. Usage: test_bench_help.sh ROOT
set -euo pipefail
programs=$(grep -lx '#!/usr/bin/env python3' "$1"/bench/*)
for program in $programs; do
	help=$("$program" --help 2>&1) || { echo "$program --help ends with $?: $help"; exit 1; }
	grep -q "^usage: $(basename "$program") " <<<"$help" || { echo "$program --help says no usage: $help"; exit 1; }
	status=0
	said=$("$program" --no-such-option 2>&1) || status=$?
	[ $status = 2 ] || { echo "$program --no-such-option ends with $status: $said"; exit 1; }
done
grep -q /gin <<<"$programs" || { echo "only these were found: $programs"; exit 1; }
