#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The vectors, and the reader of P4 that runs them, notice what is wrong with a program: each of these changes must be caught, with the word that is said of it.
# Arguments: run_program.py, the folder ina/p4.
set -euo pipefail
run=$1 from=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$from/headers.p4" "$dir"
caught=0

# mutant ARCHITECTURE WORD VECTOR SED-EXPRESSION
mutant() {
	local program=ina_$1.p4
	sed "$4" "$from/$program" >"$dir/$program"
	! cmp -s "$from/$program" "$dir/$program" || { echo "nothing to change: $4"; exit 1; }
	if "$run" "$1" "$dir/$program" "$from/vectors/$3.stf" >"$dir/out"; then
		echo "not caught in $program by $3: $4"
		exit 1
	fi
	grep -q "$2" "$dir/out" || { echo "caught otherwise than by '$2': $4"; cut -c1-300 "$dir/out"; exit 1; }
	caught=$((caught + 1))
}

# what the switch does
mutant v1model 'should have sent' early_old 's/ahead == meta.each && s.done == 1/ahead == meta.each/'
mutant v1model 'should have sent' stale_old 's/if (ahead != 0 \&\& !next)/if (false)/'
mutant v1model 'should have sent' overflow_old 's/a |+| b/a + b/'
mutant v1model 'should have sent' overflow_extended 's/{ past = 1; }/{ past = 0; }/'
mutant v1model 'should have sent' exponents_extended 's/& 32s1)/\& 32s0)/'
mutant v1model 'should have sent' duplicate_old 's/(seen & mine) != 0/false/'
mutant v1model 'should have sent' foreign_old 's/hdr.ipv4.src != meta.member/false/'
mutant v1model 'should have sent' epochs_extended 's/hdr.extension.epoch != meta.epoch/false/'
mutant v1model 'should have sent' wrap_old 's/whose != (1w1 ++ hdr.ina.group ++ meta.epoch)/false/'
mutant v1model 'should have sent' reused_old 's/1w1 ++ hdr.ina.group ++/1w1 ++ 8w0 ++/'
mutant v1model 'should have sent' marked_old 's/s.marked = 1;/s.marked = 0;/'
mutant v1model 'should have sent' malformed_extended 's/std.checksum_error == 1/false/'
mutant v1model 'should have sent' lapsed_extended 's/is_over = true/is_over = false/'
mutant tna 'should have sent' early_old 's/t.next = hdr.bridge.after/t.next = t.next/'
mutant tna 'should have sent' foreign_old 's/|| meta.beyond != 0//'
mutant tna 'should have sent' broadcast_old 's/packet.advance(128);//'
mutant tna 'should have sent\|header is invalid' broadcast_old 's/hdr.ipv4.length = 286;//'
mutant tna 'should have sent' overflow_old 's/p.first |+| /p.first + /'
mutant tna 'should have sent' duplicate_old 's/if (meta.together == meta.seen)/if (false)/'
# what the language and the architecture forbid
mutant v1model 'is wanted' all_reduce_old 's/bit<16> length = 30/bit<8> length = 30/'
mutant v1model 'never set' all_reduce_old 's/s.coll = packed.*//'
mutant v1model 'header is invalid' all_reduce_old 's/hdr.lookup.setValid();//'
mutant v1model 'does not fit' all_reduce_old 's/meta.to_all = 1;/meta.to_all = 2;/'
mutant v1model 'cannot be assigned to' all_reduce_old 's/hdr.lookup.to = hdr.ina.rank;/flag = 0;/'
mutant v1model 'is wanted' all_reduce_old 's/: ((s) > 31 \(.*\))$/: (s) > 31 \1/' # ?: groups from the left
mutant v1model 'there are two' all_reduce_old 's/InaIngress/Ingress/'
mutant tna 'there are two' all_reduce_old 's/^struct egress_t {/struct pair_t {/'
mutant tna 'expected a name' all_reduce_old 's/bit<16> port; /bit<16> out; /'
mutant tna 'reached twice' all_reduce_old 's/seen_first.execute(meta.slot);/&&/'
echo "$caught changed programs caught"
