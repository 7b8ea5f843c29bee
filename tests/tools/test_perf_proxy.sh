#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NCCL's ways: grouped receives, requests tested out of order, flushes, refused requests, both protocols, few steps.
. "$(dirname "$0")/lib.sh"

for version in 6 9 12; do
	clean 3 alltoall --net-version $version --ranks 3 --channels 8 -b 96 -e 768K -f 90 -n 2 --shuffle --flush
	grep -q 'channels: 8 per connection: 8 ' "$TMP/out" || fail "channels do not share a connection"
	clean 3 allreduce --net-version $version --ranks 3 --channels 4 --group 2 -b 64 -e 1M -f 100 -n 2 --shuffle
done
TESTSOCK_FAULT=null:3 perf allreduce --ranks 3 --channels 3 --group 3 -b 8 -e 1M -f 100 -n 2 --check-all
[ $STATUS -eq 0 ] || fail "requests that come back empty are not tried again"
TESTSOCK_FLUSH=1 perf allreduce --ranks 2 -b 64K -e 64K -n 2
[ $STATUS -eq 0 ] || fail "forceFlush"
for protocol in simple ll; do
	clean 0 allreduce --ranks 3 --protocol $protocol -b 1 -e 500K -f 30 -d int8 -n 2 --steps 3 --buffsize 96K --check-all
	clean 0 allgather --ranks 3 --protocol $protocol -b 3 -e 500K -f 30 -d int8 -n 1 --steps 1 --buffsize 4K
done
NCCL_NET_OPTIONAL_RECV_COMPLETION=0 perf allreduce -b 8 -e 8 -n 2
[ $STATUS -eq 0 ] || fail "without optional completion"
finish
