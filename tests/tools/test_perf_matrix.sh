#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every operation, with every version of the interface and 2 to 4 ranks: no wrong element.
. "$(dirname "$0")/lib.sh"

ranks=2
for version in 6 7 8 9 10 11 12; do
	for op in pingpong sendrecv allreduce allgather reducescatter broadcast reduce alltoall; do
		clean 4 $op --net-version $version --ranks $ranks -b 1 -e 220K -f 60 -n 1 -w 0
		grep -q "net v$version," "$TMP/out" || fail "v$version is not in the header"
		ranks=$((ranks % 3 + 2))
	done
done
# highest exported version wins
clean 1 pingpong -b 8 -e 8
grep -q 'net v12,' "$TMP/out" || fail "not the highest version"
# what only one version would not show: rooted elsewhere, more channels than elements, several devices
clean 0 broadcast --ranks 3 -r 2 --channels 5 -b 4 -e 64K -f 128 -n 1
clean 0 reduce --ranks 3 -r 1 --channels 5 -b 4 -e 64K -f 128 -n 1
clean 0 alltoall --ranks 3 --channels 4 --dev all -b 12 -e 512K -f 200 -n 2
clean 0 pingpong --ranks 3 --dev 1 -b 0 -e 16 -i 4 -n 2
finish
