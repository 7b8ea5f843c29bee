#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Seeds that nobody has seen before; the output names them. Arguments: the ha program, how many.
set -u
start=$(($(od -An -N4 -tu4 /dev/urandom) + 1000000))
exec "$1" sim --start "$start" --seeds "$2" -j 2
