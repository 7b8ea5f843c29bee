#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Wrong calls are refused with one line.
. "$(dirname "$0")/lib.sh"

refused 2 'OPERATION is missing'
refused 2 "unknown operation 'pingpong'" pingpong
refused 2 "'alltoall' is one word too many" all_reduce alltoall
refused 2 "there is no option --nonsense" all_reduce --nonsense
refused 2 'minbytes needs SIZE' all_reduce -b
for wrong in '-b x' '-f 1' '-n -1' '-d quad' '-o xor' '-g 0' '-g 17' '-G -1' '-R 3' '-z 2' '--hosts 0' '--net tcp' '--vs x' \
	'--rounds 0' '--ranks 0'; do
	# shellcheck disable=SC2086
	refused 2 ' takes .*, not ' all_reduce $wrong
done
refused 2 'hawser, ib or socket' all_reduce --net infiniband
refused 2 'less than' all_reduce -b 1M -e 1K
refused 2 'not one of the ranks' broadcast --ranks 2 -r 2
refused 2 'not one of the ranks' broadcast --ranks 2 -g 2 -r 4
refused 2 'shared evenly' all_reduce --ranks 4 --hosts 3
refused 2 '--vs needs --net' all_reduce --vs ib
refused 2 'another transport' all_reduce --net ib --vs ib
refused 2 'does not go with --vs' all_reduce --net hawser --vs ib -b 8 -e 8 --duration 1s
refused 2 'not enough for 5 rounds' all_reduce --net hawser --vs ib -n 4
refused 2 'needs --net ib' all_reduce --port-failover
refused 2 '-G does not go with' all_reduce -G 1 -z 1
refused 2 '-G captures' all_reduce -G 1 -n 0
refused 2 '--hosts emulates hosts' all_reduce --ranks 2 --hosts 2 # the stand-in is no softcuda
NCCL_NET=Socket refused 2 'NCCL_NET=Socket is set and overrides --net' all_reduce --net hawser
NCCL_NET=IB refused 2 'NCCL_NET=IB is set and overrides --net and --vs' all_reduce --net ib --vs socket
refused 2 '--at needs --duration' all_reduce --at 1s true
refused 1 'No such file' all_reduce --nccl /nonexistent/libnccl.so.2
refused 1 'no NCCL 9.9 was linked with softcuda' all_reduce --nccl 9.9
refused 1 'cannot be opened' all_reduce --nccl libnonesuch.so
refused 1 'it is too old, or something else' all_reduce --nccl "$STAND_INS/libcudart.so.12"
TESTCUDART_DEVICES=0 refused 1 'finds no GPU \(no CUDA-capable device is detected\); on a machine without one, --nccl softcuda' all_reduce
TESTCUDART_DEVICES=5 refused 1 'process 2 needs GPUs 4 to 5 and the CUDA runtime shows 5 here' all_reduce --ranks 3 -g 2
nccl --help
[ $STATUS -eq 0 ] && grep -q -- '--minbytes' "$TMP/out" && grep -q -- '--port-failover' "$TMP/out" || fail "--help"
finish
