#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Seeds that nobody has seen before, from the clock; the first line names the command that runs them again.
# Arguments: the ha program, how many, what faults they draw from (none: the usual mix).
set -u
start=$(date +%s%3N)
faults=${3:+--faults $3}
# shellcheck disable=SC2086 # two words or none
set -- "$1" sim --start "$start" --seeds "$2" -j 2 $faults
printf 'ha %s\n' "${*:2}"
exec "$@"
