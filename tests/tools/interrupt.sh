# SPDX-License-Identifier: BSD-3-Clause
# Sourced. ^C at a run by duration of `ha perf` or `ha nccl`, which handles it when the measurement has begun. Started by
# `env --default-signal=INT`: what a script starts in the background ignores SIGINT otherwise.

# they catch or ignore SIGINT
mind() {
	local pid mask minding
	for pid in "$@"; do
		minding=0
		for mask in $(sed -n 's/^Sig\(Cgt\|Ign\):[ \t]*//p' "/proc/$pid/status" 2>/dev/null); do
			minding=$((minding | 0x$mask & 2))
		done
		[ $minding -ne 0 ] || return 1
	done
}

# interrupt PID RANKS: as a terminal does, to the program and all its ranks, when none of them would end by it any more
# (its first children are no ranks: `ha nccl` looks at libraries in processes of their own)
interrupt() {
	local ranks
	for _ in $(seq 1200); do
		ranks=$(cat "/proc/$1/task/$1/children")
		[ "$(wc -w <<<"$ranks")" -eq "$2" ] && mind "$1" $ranks && break
		sleep 0.1
	done
	kill -INT "$1" $ranks
}

# The last command of --at: ^C at the measurement, once all other commands have ended.
END_RUN='while [ "$(wc -w <"/proc/$PPID/task/$PPID/children")" -gt 1 ]; do sleep 0.1; done; kill -INT $HA_RANK_PID_0'
