#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ha ina and ha-controller as their users call them. Arguments: ha, ha-controller.
CONTROLLER=$2
. "$(dirname "$0")/../../tools/lib.sh"
PID=0
trap '[ $PID -ne 0 ] && kill -9 $PID 2>/dev/null; rm -rf "$TMP"' EXIT
export NETCCL_CONTROLLER_ADDR=unix:$TMP/socket
unset NETCCL_CONTROLLER_CA NETCCL_CONTROLLER_CERT NETCCL_CONTROLLER_KEY

ina() {
	timeout 800 "$HA" ina --timeout=60000 "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

json() {
	python3 -c "import json, sys; s = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$TMP/out"
}

start() {
	"$CONTROLLER" --listen="unix:$TMP/socket" --settings="$TMP/settings" --database="$TMP/db" --metrics=none "$@" 2>>"$TMP/log" &
	PID=$!
	ina groups --wait --timeout=60000
	[ $STATUS -eq 0 ] || { fail "the controller does not start"; cat "$TMP/log"; exit 1; }
}

# cannot STATUS PATTERN OPTIONS: the controller ends by itself, with one line
cannot() {
	local want=$1 pattern=$2
	shift 2
	timeout 800 "$CONTROLLER" --database="$TMP/other" --metrics=none "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
	[ $STATUS -eq "$want" ] && grep -q -- "$pattern" "$TMP/err" || fail "status $STATUS: $*"
	[ "$(grep -c '^ha-controller:' "$TMP/err")" -eq 1 ] || fail "lines: $*"
}

printf 'switch leaf address 10.0.0.254 slots 4096 serves 10.0.0.0/24\nlate 1\n' >"$TMP/settings"

# called wrongly, nobody there
timeout 800 "$HA" ina 2>/dev/null
[ $? -eq 2 ] || fail "called without a command"
for wrong in "nonsense" "groups more" "create" "create 1.2.3.4,nonsense" "create 10.0.0.1,10.0.0.2 --length=x" "destroy" "destroy x" \
	"destroy 0" "destroy 256" "renew 1 --rank=32" "renew 1 --secret=xyz" "groups --nonsense"; do
	ina $wrong
	[ $STATUS -eq 2 ] && [ -s "$TMP/err" ] || fail "called with '$wrong': $STATUS"
done
ina --help
[ $STATUS -eq 0 ] && grep -q '^usage: ha ina' "$TMP/out" || fail "--help"
ina groups
[ $STATUS -eq 1 ] && grep -q 'is ha-controller running' "$TMP/err" && [ "$(wc -l <"$TMP/err")" -eq 1 ] || fail "nobody there"
"$CONTROLLER" --help | grep -q '^usage: ha-controller' || fail "ha-controller --help"
cannot 2 'there is no option --nonsense' --nonsense
cannot 2 'from 1 to 1000000' --calls=0
cannot 2 'none: No such file' --settings="$TMP/none"
printf 'switch x address 10.0.0.1 slots 4096 serves 10.0.0.0/24\nquota me\n' >"$TMP/wrong"
cannot 2 'wrong: line 2: it is: quota' --settings="$TMP/wrong"
cannot 1 'nobody can listen' --listen=1.2.3.4:1
cannot 1 'a certificate and its key come together' --listen=127.0.0.1:0 --cert="$TMP/none"
cannot 1 'its directory does not exist; make it' --database="$TMP/none/db"
cannot 1 'unable to open' --database="$TMP"

start
cannot 1 'another controller has it open' --database="$TMP/db" --listen=127.0.0.1:0
ina groups
[ $STATUS -eq 0 ] && grep -qE '^leaf +10\.0\.0\.254 +up +4096 of +4096 free, longest +4096 +10\.0\.0\.0/24$' "$TMP/out" &&
	grep -q '^no group$' "$TMP/out" || fail "groups, none"
ina create 10.0.0.2,10.0.0.1 --length=512 --lease=60 --name='job 1'
[ $STATUS -eq 0 ] && grep -qE '^group 1 on leaf \(10\.0\.0\.254\): aggregators 0 to 511, epoch 1, lease 60000 ms, secret [0-9a-f]{16}$' "$TMP/out" ||
	fail "create"
SECRET=$(grep -oE '[0-9a-f]{16}$' "$TMP/out")
ina groups
grep -qE '^ +1 +leaf +0 to +511 +1 +live +[0-9.]+ s +local +10\.0\.0\.2,10\.0\.0\.1 +job 1$' "$TMP/out" || fail "groups, one"
ina groups --json
json 's["switches"][0]["free"] == 3584 and s["groups"][0]["members"] == ["10.0.0.2", "10.0.0.1"] and s["groups"][0]["name"] == "job 1"
	and s["groups"][0]["state"] == "live"' || fail "groups --json"
ina renew 1 --secret="$SECRET" --rank=0
[ $STATUS -eq 0 ] && grep -q '^group 1: epoch 1, lease 60000 ms$' "$TMP/out" || fail "renew"
ina renew 1 --secret=1
[ $STATUS -eq 1 ] && grep -q 'the group of this key is over' "$TMP/err" || fail "renew with another secret"
ina create 11.0.0.1,11.0.0.2
[ $STATUS -eq 3 ] && grep -q 'no group, do without the switch: no switch serves 11.0.0.1' "$TMP/err" || fail "no group"
ina create 10.0.0.1,10.0.0.1
[ $STATUS -eq 1 ] && grep -q 'have the same address 10.0.0.1' "$TMP/err" || fail "twice the same"

# a crash keeps the group and its secret
kill -9 $PID
wait $PID 2>/dev/null
start
ina renew 1 --secret="$SECRET"
[ $STATUS -eq 0 ] || fail "renew after a crash"
ina destroy 1 --secret="$SECRET"
[ $STATUS -eq 0 ] && [ ! -s "$TMP/err" ] || fail "destroy"
ina groups
grep -q 'ended.*(a client has ended it)' "$TMP/out" || grep -q '^no group$' "$TMP/out" || fail "after destroy"

# it hangs
kill -STOP $PID
ina groups --timeout=300
[ $STATUS -eq 1 ] && grep -q 'no answer within 300 ms' "$TMP/err" || fail "a hanging controller"
kill -CONT $PID
kill $PID
wait $PID
[ $? -eq 0 ] || fail "an orderly end"
PID=0
# the example is one that can be used
sed 's/^#switch/switch/' "$(dirname "$0")/../../../ina/controller/ha-controller.conf" >"$TMP/settings"
start
ina groups
[ "$(grep -cE '^(leaf1|leaf2) .* up ' "$TMP/out")" -eq 2 ] && grep -qE '^spine .* away ' "$TMP/out" || fail "the example of settings"
kill $PID
wait $PID
PID=0
# the database and the socket are its own alone
[ "$(stat -c %a "$TMP/db")" = 600 ] || fail "mode of the database"
finish
