#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a faulty plugin does is noticed: wrong bytes are counted, everything else ends the run with one line.
. "$(dirname "$0")/lib.sh"

# wrong FAULT ARGUMENTS: status 1, wrong elements in the table and in its footer
wrong() {
	local fault=$1
	shift
	TESTSOCK_FAULT=$fault perf "$@"
	[ $STATUS -eq 1 ] || fail "$fault: status $STATUS"
	grep -q '^# Out of bounds values : [1-9][0-9]* FAILED$' "$TMP/out" || fail "$fault: no wrong element counted"
}

# broken FAULT PATTERN [TIMEOUT]: status 1 and one line with the pattern
broken() {
	TESTSOCK_FAULT=$1 refused 1 "$2" allreduce --ranks 3 -b 64K -e 64K -n 5 -T "${3:-60}"
}

for op in pingpong sendrecv allreduce allgather reducescatter broadcast alltoall; do
	wrong corrupt:2 $op --protocol simple -b 64K -e 64K -n 2 -w 0 --check-all
done
# the default verification, after the measured iterations: 20 + 1 of them with 4 messages each way
wrong corrupt:86 sendrecv -b 512K -e 512K --protocol simple
# exactly one element of each rank, of 64 ranks' worth
wrong corrupt:1 sendrecv -b 4K -e 4K -n 1 -w 0 -c 0 --check-all --protocol simple
grep -q '^# Out of bounds values : 2 FAILED' "$TMP/out" || fail "one flipped bit in each of two ranks is not 2 elements"
wrong stale:2 sendrecv -b 512K -e 512K -n 2 -w 0 --check-all
wrong swap:2 sendrecv -b 512K -e 512K -n 2 -w 0 --check-all
broken drop:3 'nothing has moved for 6 s' 6
broken short:3 'bytes arrived'
broken error:3 'isend: plugin .testsock. (v12) returned 6 (remote error)'
broken untouched:3 'left \*request as it was'
broken die:3 'was killed by signal 9'
broken leave:3 'left with status 7'
# in reduce only two of three ranks send: the third one is left alone
TESTSOCK_FAULT=quit:3 refused 1 'ended as if all were well' reduce --ranks 3 -b 64K -e 64K -n 5
# the same when one loses its connection long before it can learn of the other's end, and so complains of the plugin (unless it was busy meanwhile)
TESTSOCK_FAULT=desert:3 refused 1 'ended as if all were well$' reduce --ranks 3 -b 64K -e 64K -n 5
broken no-accept:1 'accept from rank' 6
broken nodev:1 'no device'
TESTSOCK_FAULT=sentinel:1 refused 1 'optional-completion sentinel' allreduce -b 8 -e 8
# a flag of the LL protocol that never comes
TESTSOCK_FAULT=corrupt:1 refused 1 'nothing has moved' allreduce -b 4 -e 4 -d int8 -T 6 -w 0 -n 1
finish
