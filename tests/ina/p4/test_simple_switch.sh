#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ina_v1model.p4 compiles without a warning, and simple_switch with it answers every vector as the slot core does. That a wrong answer, a missing one and one too many
# are noticed is shown with vectors that were changed. Arguments: p4c-bm2-ss, the folder ina/p4. Needs root or user namespaces.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" --Werror -o "$dir/ina.json" "$2/ina_v1model.p4"
"$2/run-stf" "$dir/ina.json" "$2"/vectors/*.stf

from=$2/vectors/all_reduce_old.stf
sed '0,/^expect/{/^expect/s/.$/f/}' "$from" >"$dir/wrong.stf"      # its last digit is another one
sed '0,/^expect/{/^expect/d}' "$from" >"$dir/too_many.stf"
sed '0,/^expect/{/^expect/{p}}' "$from" >"$dir/missing.stf"
for name in wrong too_many missing; do
	! cmp -s "$from" "$dir/$name.stf" || { echo "$name.stf was not changed"; exit 1; }
	if "$2/run-stf" "$dir/ina.json" "$dir/$name.stf" >"$dir/out"; then
		echo "a changed vector passed: $name"
		exit 1
	fi
	grep -q "should have sent" "$dir/out" || { cat "$dir/out"; exit 1; }
done
