#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `ha doctor` as a program, over the software NIC: what it says of this environment, its exit status, JSON.
# Arguments: ha, hawser's plugin, another plugin.
set -euo pipefail
ha=$1 plugin=$2 other=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HA_NCCL_VERBS=soft NCCL_NET=HA NCCL_NET_PLUGIN=$plugin NCCL_CONF_FILE=$tmp/none HOME=$tmp
unset NCCL_NET_PLUGIN_REF_COUNT NETCCL_BACKEND

fail() { echo "$1" >&2; exit 1; }

# doctor STATUS ARGUMENTS: JSON of a run that must end so, in $tmp/json
doctor() {
	local want=$1 rc=0
	shift
	"$ha" doctor --json --nccl "$other" "$@" >"$tmp/json" 2>"$tmp/err" || rc=$?
	[ "$rc" = "$want" ] || { cat "$tmp/json" "$tmp/err" >&2; fail "ended with $rc instead of $want: $*"; }
	[ ! -s "$tmp/err" ] || { cat "$tmp/err" >&2; fail "more than its findings"; }
}

# finds SEVERITY CHECK [TEXT]: such a finding is there; TEXT is in its text, cost or mend
finds() {
	python3 - "$tmp/json" "$@" <<'END' || { cat "$tmp/json" >&2; fail "no finding: $*"; }
import json, sys
report = json.load(open(sys.argv[1]))
severity, check = sys.argv[2:4]
text = sys.argv[4] if len(sys.argv) > 4 else ""
hits = [f for f in report["findings"] if f["severity"] == severity and f["check"] == check
        and text in " ".join(str(f[k]) for k in ("text", "cost", "mend", "subject"))]
assert report["count"][severity] == sum(f["severity"] == severity for f in report["findings"])
assert all(f["severity"] == "fine" or (f["cost"] and f["mend"]) for f in report["findings"]), "cost and mend"
sys.exit(not hits)
END
}

ulimit -S -n 1024
doctor 0
finds fine plugin "$(basename "$plugin")"
finds fine nccl 'NCCL 2.27.3 calls version 10'
finds fine environment 'HA_NCCL_VERBS=soft is followed'
finds fine port.speed soft0:1
finds fine standby 'soft1:1 stands by for it'
finds warning nofile '480 connections'
doctor 1 --strict
TEST_NCCL_VERSION=23007 doctor 0
finds fine nccl 'calls version 12'

# as text: the worst first, what is in order only when asked for
"$ha" doctor --nccl "$other" >"$tmp/out" || fail "as text"
grep -qE '^0 errors, [1-9][0-9]* warnings?, ' "$tmp/out" || fail "no sum: $(cat "$tmp/out")"
grep -q 'mend:  ulimit -n' "$tmp/out" || fail "no mend: $(cat "$tmp/out")"
! grep -q '^fine' "$tmp/out" || fail "what is in order, without --verbose"
"$ha" doctor -v --nccl "$other" | grep -q '^fine' || fail "--verbose"

# another plugin, none, one that is not there, one that crashes whoever opens it
NCCL_NET_PLUGIN=$other doctor 1
finds error plugin "network is OTHER"
NCCL_NET_PLUGIN=none doctor 1
finds error plugin 'export NCCL_NET_PLUGIN='
env -u NCCL_NET_PLUGIN LD_LIBRARY_PATH= "$ha" doctor --json >"$tmp/json" && fail "without NCCL_NET_PLUGIN"
finds error plugin 'loads no plugin'
NCCL_NET_PLUGIN=$tmp/nothing.so doctor 1
finds error plugin 'nothing.so'
NCCL_NET_PLUGIN=$other TEST_PLUGIN_CRASHES=1 doctor 1
finds error plugin 'killed by signal'
# as NCCL completes a short name, and takes the first of a list that is there
folder=$(dirname "$other")
NCCL_NET_PLUGIN=other LD_LIBRARY_PATH=$folder doctor 1
finds error plugin 'network is OTHER'
NCCL_NET_PLUGIN=absent,$plugin doctor 0
finds fine plugin

# the environment, also NCCL's files
NCCL_NET=IB doctor 1
finds error environment.net
echo 'NCCL_IB_DISABLE=1' >"$tmp/conf"
NCCL_CONF_FILE=$tmp/conf doctor 1
finds error environment.disabled 'unset NCCL_IB_DISABLE'
NCCL_IB_TIMEOUT=22 HA_NCCL_RTO=5 doctor 0
finds warning environment 'NCCL_IB_TIMEOUT=22 is set, but not read'
finds warning environment 'HA_NCCL_RTO is set, but there is no such variable'
NCCL_IB_FOO=1 doctor 0
finds warning environment 'NCCL_IB_FOO is set, but hawser'
NCCL_IB_HCA==soft1 doctor 0
finds warning standby 'NCCL_IB_HCA'
NCCL_IB_HCA=mlx5 doctor 1
finds error devices 'leaves none of the 2 devices'
NCCL_SOCKET_IFNAME=none0 doctor 1
finds error oob
NETCCL_BACKEND=$tmp/none.sock doctor 0
finds warning backend 'systemctl start ha-backend'
HA_NCCL_VERBS=$tmp/none.so doctor 1
finds error verbs

rc=0; "$ha" doctor nonsense 2>/dev/null || rc=$?
[ "$rc" = 2 ] || fail "a word too many: $rc"
"$ha" doctor --help | grep -q '^usage: ha doctor' || fail "--help"
