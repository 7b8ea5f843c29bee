# SPDX-License-Identifier: BSD-3-Clause
# Sourced. $switch: a ha-switch whose lines are in $top/err.

# says SENTENCE: within a minute
says() {
	for _ in $(seq 600); do
		! grep -qF -- "$1" "$top/err" || return 0
		kill -0 "$switch" 2>/dev/null || break
		sleep 0.1
	done
	echo "ha-switch did not say '$1' but:" >&2
	cat "$top/err" >&2
	exit 1
}
