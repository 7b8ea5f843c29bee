#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Seeds that nobody has run before: they start at the clock. Usage: test_fresh.sh HA SEEDS
set -eu
start=$(date +%s)000
echo "ha ina-sim --start $start --seeds $2"
exec "$1" ina-sim --start "$start" --seeds "$2"
