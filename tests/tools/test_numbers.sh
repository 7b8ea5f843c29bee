#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A number that is none, or out of range, is refused with one line that names the option, the range and what was given.
# Arguments: ha, the testsock plugin (unused), then the other programs, by path; those that are not built are left out.
. "$(dirname "$0")/lib.sh"
shift 2
export SOFTROCE_CONTROL=$TMP

# refused_number OPTION RANGE TEXT PROGRAM ARGUMENTS: status 2 and one line with all three
refused_number() {
	local option=$1 range=$2 text=$3
	shift 3
	timeout 800 "$@" >"$TMP/out" 2>"$TMP/err"
	local status=$?
	[ $status -eq 2 ] || fail "status $status instead of 2: $*"
	[ "$(cat "$TMP/out" "$TMP/err" | wc -l)" -eq 1 ] || fail "not one line: $*"
	for words in "$option" "$range" "$text"; do
		grep -qF -- "$words" "$TMP/err" || fail "no '$words': $*"
	done
}

for option in seeds start seed jobs messages fault-mask without-faults without-connections; do
	for text in x 1x -1 ' 1' ''; do
		refused_number "--$option" 'a whole number from' "'$text'" "$HA" sim "--$option" "$text"
	done
done
refused_number --seeds 'from 1 to 18446744073709551615' "'0'" "$HA" sim --seeds 0
refused_number --seed 'from 0 to' "'18446744073709551616'" "$HA" sim --seed 18446744073709551616
refused_number --jobs 'from 1 to 1024' "'1025'" "$HA" sim --jobs 1025
refused_number --fault-mask 'from 0 to 4294967295' "'0x100000000'" "$HA" sim --fault-mask 0x100000000
refused_number --seeds 'from 1 to' "'x'" "$HA" ina-sim --seeds x
refused_number --seeds 'from 1 to' "'0'" "$HA" ina-sim --seeds 0
refused_number --start 'from 0 to' "'-3'" "$HA" ina-sim --start -3
refused_number --ranks 'from 2 to 4' "'1'" "$HA" gpu-moe --ranks 1
refused_number --rounds 'from 1 to 1000000' "'0'" "$HA" gpu-check --rounds 0
refused_number --gid-index 'from 0 to 255' "'256'" "$HA" gpu-check --gid-index 256
refused_number --rank 'from 0 to 1' "''" "$HA" gpu-check --rank ''
refused_number --watch 'from 1 to 86400' "'0'" "$HA" status --watch=0
refused_number --events 'from 0 to 128' "'129'" "$HA" status --events 129
refused_number --ranks 'from 2 to 32' "'33'" "$HA" ina-perf --ranks 33
refused_number --min 'from 4 to 1G' "'2G'" "$HA" ina-perf -b 2G
# Of a rule for the agent, also where none runs.
export HA_NCCL_AGENT_SOCKET=$TMP/none/agent.sock
for text in abc 1025 1x ''; do
	refused_number 'the share' 'from 0 to 1024' "'set 10.0.0.1 * $text'" "$HA" agent set 10.0.0.1 '*' "$text"
done
for text in 10.0.0.0/99 10.0.0.0/-1 10.0.0.300 foo; do
	refused_number 'the source' 'no IPv4 address, network or *' "'set $text * 5'" "$HA" agent set "$text" '*' 5
	refused_number 'the destination' 'no IPv4 address, network or *' "'unset * $text'" "$HA" agent unset '*' "$text"
done
refused_number 'ha agent' 'too long' 1111 "$HA" agent set "$(printf '1%.0s' {1..300})" '*' 5

for option in iters:0:100000000 ranks:1:4096 timeout:1:86400 channels:1:64 steps:1:32 net-version:6:12; do
	IFS=: read -r name low high <<<"$option"
	refused_number "--$name" "from $low to $high" "'$((high + 1))'" "$HA" perf allreduce "--$name" $((high + 1))
done
refused_number --minbytes 'from 0 to 64T' "'1Q'" "$HA" perf allreduce --minbytes 1Q
refused_number --duration 'from 1ms to 86400s' "'1us'" "$HA" perf allreduce --duration 1us
refused_number --stepfactor 'above 1' "'1'" "$HA" perf allreduce --stepfactor 1

for program in "$@"; do
	[ -x "$program" ] || continue
	case ${program##*/} in
	ha-agent)
		refused_number --interval 'from 10 to 60000' "'9'" "$program" --interval 9
		refused_number --connections 'from 1 to 1000000' "'x'" "$program" --connections=x ;;
	ha-controller)
		refused_number --calls 'from 1 to 1000000' "'0'" "$program" --calls=0
		refused_number --calls-per-host 'from 1 to 1000000' "'x'" "$program" --calls-per-host=x ;;
	ha-ina)
		refused_number --timeout 'from 1 to 3600000' "'0'" "$program" groups --timeout=0
		refused_number GROUP 'from 1 to 255' "'256'" "$program" destroy 256 --controller=unix:/nonexistent ;;
	gpu-hunt)
		refused_number --seeds 'from 1 to' "'x'" "$program" --seeds x
		refused_number --kind 'from 0 to' "'x'" "$program" --kind x ;;
	esac
done
finish
