# SPDX-License-Identifier: BSD-3-Clause
# Sourced. listening PORT [PID [COMMAND...]]: wait until somebody listens on the TCP port, PID has ended, or a minute is over.
# COMMAND looks from elsewhere: `inside NAME` (tests/netns).
listening() {
	local hex pid=${2:-}
	hex=$(printf '%04X' "$1")
	shift; [ $# = 0 ] || shift
	for _ in $(seq 1200); do
		"$@" grep -qsE "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F:]+ 0A" /proc/net/tcp /proc/net/tcp6 && return 0
		[ -z "$pid" ] || kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}
