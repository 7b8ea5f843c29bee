#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tshark with ina/frame/netccl.lua decodes every frame of the vectors as hawser does, field by field, and finds fault with the same ones.
# Arguments: the ina-vectors program, the script.
set -euo pipefail
command -v tshark >/dev/null || { echo "skipped: no tshark (scripts/install-deps test)"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" pcap "$dir/frames.pcap" "$dir/list"

tshark -X "lua_script:$2" -o ip.check_checksum:TRUE -r "$dir/frames.pcap" -T fields -E separator='|' -E occurrence=a \
	-e frame.number -e ip.proto -e netccl.coll -e netccl.group -e netccl.rank -e netccl.root -e netccl.slot -e netccl.psn \
	-e ip.dsfield.dscp -e ip.dsfield.ecn -e netccl.flags -e netccl.exponent -e netccl.epoch -e netccl.nwords -e netccl.word \
	-e netccl.bad -e ip.checksum.status 2>"$dir/errors" |
	awk -F'|' '
		$3 == "" || $16 != "" || $17 == "0" || $17 == "Bad" { print $1, "bad"; next }
		{
			n = split($15, w, ",")
			if (n != $14) { print $1, "has", n, "words"; next }
			printf "%d %s coll=%d group=%d rank=%d root=%d slot=%d psn=%u worker=%d ecn=%d flags=%s exponent=%d epoch=%u words=%d first=%s last=%s\n",
				$1, $2 == 253 ? "extended" : "old", $3, $4, $5, $6, $7, $8, $9, $10, $11 == "" ? "0x00" : $11, $12, $13, $14,
				n ? w[1] : 0, n ? w[n] : 0
		}' >"$dir/decoded"
grep -i lua "$dir/errors" && { echo "the script does not run"; exit 1; }
diff "$dir/list" "$dir/decoded" >"$dir/difference" || { echo "hawser (<) and tshark (>) disagree:"; head -20 "$dir/difference"; exit 1; }
echo "$(wc -l <"$dir/list") frames, of which $(grep -c bad "$dir/list") are none, decoded alike"
