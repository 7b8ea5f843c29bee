#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Wrong calls are refused with one line.
. "$(dirname "$0")/lib.sh"

refused 2 'OPERATION is missing'
refused 2 "unknown operation 'nonsense'" nonsense
refused 2 "'alltoall' is one word too many" allreduce alltoall
refused 2 "there is no option --nonsense; .ha perf --help. explains" allreduce --nonsense
refused 2 'there is no option --pluging; did you mean --plugin;' allreduce --pluging x
refused 2 'minbytes needs SIZE' allreduce -b
refused 2 'shuffle takes no argument' allreduce --shuffle=1
for wrong in '-b x' '-e 1Q' '-e -5' '-f 1' '-i 0' '-n -1' '-d quad' '-o xor' '--dev x' '--net-version 5' '--channels 0' \
	'--steps 33' '--group 9' '--protocol fast' '--seed x' '-a 4' '-T 0'; do
	# shellcheck disable=SC2086
	refused 2 ' takes .*, not ' allreduce $wrong
done
refused 2 'less than' allreduce -b 1M -e 1K
refused 2 'one rank alone has no peer' allreduce --ranks 1
refused 2 'not one of the ranks' broadcast --ranks 2 -r 2
refused 2 '--rank needs' allreduce --rank 1
refused 2 'HOST:PORT' allreduce --ranks 2 --rank 1 --rendezvous nowhere
refused 1 'there is no device 7' allreduce --dev 7
refused 1 'No such file' allreduce --input /nonexistent/file
refused 1 '--input /etc: not a regular file; give a raw, .npy or .safetensors file' allreduce --input /etc
# before anything is measured: the table has not begun
refused 1 '--json /nonexistent/x: /nonexistent: No such file or directory; name a file' allreduce --json=/nonexistent/x
[ -s "$TMP/out" ] && fail "measured before --json was looked at"
refused 1 "--json $TMP: it is a directory" allreduce --json="$TMP"
refused 1 '--timeline /nonexistent/x: /nonexistent: No such' allreduce -b 8 -e 8 --duration 1s --timeline /nonexistent/x
[ -s "$TMP/out" ] && fail "measured before --timeline was looked at"
refused 1 '/nonexistent/plugin.so' allreduce --plugin /nonexistent/plugin.so
refused 1 'libnccl-net-nonesuch.so' allreduce --plugin nonesuch
refused 1 'exports no net table' allreduce --plugin libm.so.6
refused 1 'nonesuch' allreduce --vs nonesuch -b 8 -e 8
perf --help
[ $STATUS -eq 0 ] && grep -q -- '--minbytes' "$TMP/out" || fail "--help"
# NCCL's way to a plugin: X is libnccl-net-X.so in the library path
LD_LIBRARY_PATH=$(dirname "$PLUGIN") timeout 800 "$HA" perf pingpong --plugin testsock -b 8 -e 8 >"$TMP/out" 2>"$TMP/err" ||
	fail "the short name"
# NCCL_DEBUG reaches the plugin's lines
NCCL_DEBUG=INFO perf pingpong -b 8 -e 8
grep -q 'NCCL INFO NET/testsock: ready' "$TMP/err" || fail "the plugin's log lines"
NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$TMP/log.%p perf pingpong -b 8 -e 8
[ "$(cat "$TMP"/log.* | grep -c ready)" -eq 2 ] || fail "NCCL_DEBUG_FILE"
finish
