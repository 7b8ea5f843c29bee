#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Instructions per operation in softroce/engine (both ends together), by callgrind. Usage: perf_engine.sh [BUILD]
set -euo pipefail
program=${1:-build}/tests/softroce/perf_engine
out=$(mktemp)
trap 'rm -f "$out"' EXIT
count=2000
for what in 'write 8' 'imm 8' 'send 8' 'read 8' 'write 4096' 'write 65536' 'read 65536'; do
	# shellcheck disable=SC2086
	valgrind --tool=callgrind --toggle-collect=work --callgrind-out-file="$out" "$program" $what $count >/dev/null 2>&1
	callgrind_annotate --threshold=100 "$out" | python3 -c '
import re, sys
engine = memory = 0
for line in sys.stdin:
    m = re.match(r"\s*([\d,]+) \(.*?\)\s+(\S+)", line)
    if not m: continue
    n, where = int(m[1].replace(",", "")), m[2]
    if "softroce/engine/" in where: engine += n
    elif "memcpy" in line or "memmove" in line: memory += n
print("%-12s %7.1f instructions per operation, and %.1f in memcpy (wire included)" % (sys.argv[1], engine / float(sys.argv[2]), memory / float(sys.argv[2])))
' "$what" $count
done
