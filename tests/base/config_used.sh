#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What config_table.h says about each variable is true: one that is marked NOW is read by some source file, one that is
# marked LATER by none; and every NETCCL_ variable that a program reads is on the page that is made of the tables, and no other.
# Argument: the source folder.
set -euo pipefail
cd "$1"
sources=$(find base rdma plugin ina tools -name '*.[ch]' ! -name 'config*' ! -name cmd_config.c)
wrong=0

used() { # field
	case $1 in
	debug | nccl_debug | nccl_debug_subsys) return 0 ;; # ha_config_load_env gives them to the log
	force_ib_timeout | qp_timeout) grep -qE 'ha_config_timeout\(' $sources ;;
	ib_port_failover | ib_port_recovery) grep -qE "config->$1\b" base/config.c ;; # rules between variables
	rto_ms) grep -qE 'ha_config_rto_ns\(' $sources ;;
	qp_retry_cnt) grep -qE '(->|\.)qp_retry_cnt\b' $sources ;;
	*) grep -qE "(config|cfg)(->|\.)$1\b" $sources ;;
	esac
}

while read -r field status; do
	if [ "$status" = NOW ] && ! used "$field"; then
		echo "$field is marked NOW, but nothing reads it"
		wrong=1
	elif [ "$status" = LATER ] && used "$field"; then
		echo "$field is marked LATER, but it is read"
		wrong=1
	fi
done < <(tr '\n' ' ' <base/config_table.h | grep -oE 'X\([A-Z]+, [a-z_0-9]+, "[A-Z_0-9]+",[^"]*"[^"]*", (NOW|LATER)' |
	sed -E 's/^X\([A-Z]+, ([a-z_0-9]+),.* (NOW|LATER)$/\1 \2/')

read_by_programs=$(grep -rhoE '"NETCCL_[A-Z_]+"' --include='*.c' --include='*.py' ina plugin/collnet | tr -d '"' | sort -u)
on_the_page=$(grep -oE '^\| `NETCCL_[A-Z_]+`' docs/configuration.md | tr -d '|` ' | sort -u)
in_config_table=$(grep -oE '"NETCCL_[A-Z_]+"' base/config_table.h | tr -d '"' | sort -u)
for name in $read_by_programs; do
	grep -qx "$name" <<<"$on_the_page" || { echo "$name is read, but docs/configuration.md does not have it"; wrong=1; }
done
for name in $on_the_page; do
	grep -qx "$name" <<<"$read_by_programs"$'\n'"$in_config_table" || { echo "$name is in docs/configuration.md, but nothing reads it"; wrong=1; }
done
exit $wrong
