#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ha agent and the metrics, against a living agent, a hanging one, and none. Arguments: ha, ha-agent.
AGENT=$2
. "$(dirname "$0")/../tools/lib.sh"

export HA_NCCL_AGENT_SOCKET=$TMP/mpib/agent.sock HA_NCCL_AGENT_HINTS=$TMP/mpib/hints
PID=0
trap '[ $PID -ne 0 ] && kill -9 $PID 2>/dev/null; rm -rf "$TMP"' EXIT

agent() {
	timeout 800 "$HA" agent "$@" >"$TMP/out" 2>"$TMP/err"
	STATUS=$?
}

start() {
	"$AGENT" --metrics 127.0.0.1:0 "$@" 2>>"$TMP/log" &
	PID=$!
	for _ in $(seq 600); do
		"$HA" agent dump >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "the agent does not start"
}

# json EXPRESSION: true of the JSON in $TMP/out, which is `s`
json() {
	python3 -c "import json, sys; s = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$TMP/out"
}

# register SOURCE DESTINATION: holds a registration until its standard input ends; prints the slot
register() {
	python3 - "$HA_NCCL_AGENT_SOCKET" "$1" "$2" <<'END'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
ip = socket.inet_aton
s.send(struct.pack("=IHBBI", 0x4D504952, 28, 1, 0, 7) + ip(sys.argv[2]) + ip(sys.argv[3]) + ip("10.8.0.1") + ip("10.8.0.2"))
answer = struct.unpack("=IHBBII", s.recv(16))
assert answer[:4] == (0x4D504952, 16, 128, 0), answer
print(answer[4], answer[5], flush=True)
import os, time
open(os.environ["TMP"] + "/registered", "w").close()
while not os.path.exists(os.environ["TMP"] + "/go"):
    time.sleep(0.02)
END
}
export TMP

# something else lies where the control socket belongs
mkdir -p "$TMP/mpib/control"
"$AGENT" --metrics 127.0.0.1:0 2>"$TMP/err"
[ $? -ne 0 ] && grep -q "$TMP/mpib/control: " "$TMP/err" || fail "a folder in the control socket's place: $(cat "$TMP/err")"
rm -r "$TMP/mpib"

# a directory is not made in the root, nor with its parents; one below a directory is
for dir in /ha-nonexistent //ha-nonexistent "$TMP/none/none"; do
	for words in "--socket=$dir/x.sock --hints=$TMP/hints/x" "--socket=$TMP/hints/x.sock --hints=$dir/x"; do
		timeout 20 "$AGENT" --metrics 127.0.0.1:0 $words 2>"$TMP/err"
		[ $? -eq 1 ] && grep -q "ha-agent: $dir: there is no such directory; make it, or name another with --socket" "$TMP/err" || fail "$words"
		[ ! -e "$dir" ] && [ ! -e "$TMP/none" ] || fail "$dir was made"
	done
done
rm -rf /ha-nonexistent "$TMP/hints"

# no agent
agent show
[ $STATUS -eq 1 ] && grep -q 'No such file or directory; start ha-agent, or say in HA_NCCL_AGENT_HINTS' "$TMP/err" || fail "show without a file"
agent dump
[ $STATUS -eq 1 ] && grep -q 'start ha-agent, or say in HA_NCCL_AGENT_SOCKET' "$TMP/err" || fail "dump without an agent"
for wrong in "" "nonsense" "set" "set 1.2.3.4 5" "unset 1.2.3.4" "show me" "dump it"; do
	agent $wrong
	[ $STATUS -eq 2 ] && [ "$(grep -c '^ha agent: ' "$TMP/err")" -eq 1 ] || fail "called with '$wrong'"
done
agent --help
[ $STATUS -eq 0 ] && grep -q '^usage: ha agent' "$TMP/out" || fail "--help"
"$AGENT" --help | grep -q '^usage: ha-agent' || fail "ha-agent --help"

start
agent show
[ $STATUS -eq 0 ] && grep -q 'heartbeat is running' "$TMP/out" && grep -q 'no flow is registered' "$TMP/out" || fail "show, empty"
register 10.0.0.1 10.0.0.2 >"$TMP/slot" &
CLIENT=$!
for _ in $(seq 600); do [ -e "$TMP/registered" ] && break; sleep 0.1; done
[ "$(cat "$TMP/slot")" = "0 0" ] || fail "the slot: $(cat "$TMP/slot")"
agent dump
json 's["policy"] == "manual" and s["slots"] == [{"slot": 0, "sout_source": "10.0.0.1", "sout_destination": "10.0.0.2",
	"sup_source": "10.8.0.1", "sup_destination": "10.8.0.2", "connections": 1, "share": 0, "from": "default"}]' || fail "dump"
agent set 10.0.0.0/24 '*' 512
[ $STATUS -eq 0 ] && [ ! -s "$TMP/out" ] || fail "set"
agent show
grep -qE '^ +0 +10\.0\.0\.1 +10\.0\.0\.2 +512$' "$TMP/out" || fail "the share that was set"
agent set 10.0.0.1 10.0.0.2 1024
agent dump
json 's["slots"][0]["share"] == 1024 and s["slots"][0]["from"] == "manual"' || fail "the more exact rule"
json 's["rules"] == ["10.0.0.0/24 * 512", "10.0.0.1/32 10.0.0.2/32 1024"]' || fail "the rules"
agent set 10.0.0.1 10.0.0.2 1025
[ $STATUS -eq 2 ] && grep -q '0 to 1024' "$TMP/err" || fail "a share past 1024"
agent set 10.0.0.300 10.0.0.2 5
[ $STATUS -eq 2 ] && grep -q 'no IPv4 address' "$TMP/err" || fail "an address that is none"
agent set "$(printf '1.1.1.1\nunset')" 10.0.0.2 5
[ $STATUS -eq 2 ] || fail "two lines in one"
agent unset 10.0.0.1 10.0.0.2
[ $STATUS -eq 0 ] || fail "unset"
agent unset 10.0.0.1 10.0.0.2
[ $STATUS -eq 1 ] && grep -q 'no such rule' "$TMP/err" || fail "unset again"

# metrics
agent dump
PORT=$(python3 -c "import json; print(json.load(open('$TMP/out'))['metrics_port'])")
python3 - "$PORT" <<'END' || fail "metrics"
import re, sys, urllib.error, urllib.request
def get(path, method="GET"):
    return urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}{path}", method=method), timeout=20)
r = get("/metrics")
assert r.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
text = r.read().decode()
assert text.endswith("# EOF\n")
types, seen = {}, set()
for line in text.splitlines()[:-1]:
    if m := re.fullmatch(r"# TYPE (\S+) (gauge|counter)", line):
        assert m[1] not in types, line
        types[m[1]] = m[2]
    elif not line.startswith("# HELP "):
        m = re.fullmatch(r'([a-z_]+)(\{([a-z]+="[^"\\]*",?)+\})? (\d+)', line)
        assert m, line
        name = m[1]
        family = name[:-6] if name.endswith("_total") else name
        assert types[family] == ("counter" if name.endswith("_total") else "gauge"), line
        assert m[1] + (m[2] or "") not in seen
        seen.add(m[1] + (m[2] or ""))
assert 'hawser_agent_share{slot="0",source="10.0.0.1",destination="10.0.0.2",from="manual"} 512' in text
assert "hawser_agent_registrations_total 1\n" in text and "hawser_agent_slots_used 1\n" in text
assert get("/metrics", "HEAD").read() == b""
for path, method, code in ("/", "GET", 404), ("/metrics", "POST", 405), ("/metrics/../etc", "GET", 404):
    try:
        get(path, method)
        assert False, path
    except urllib.error.HTTPError as e:
        assert e.code == code, (path, e.code)
END

# a web client that sends nothing, or nonsense, holds nobody up
python3 - "$PORT" "$HA_NCCL_AGENT_SOCKET" <<'END' || fail "hostile web clients"
import socket, sys, os
idle = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(30)]
for s in idle[:8]:
    try:
        s.send(os.urandom(2000))
    except OSError:
        pass
c = socket.socket(socket.AF_UNIX)
c.settimeout(20)
c.connect(os.path.dirname(sys.argv[2]) + "/control")
c.send(b"dump\n")
assert c.recv(3) == b"ok\n"
# the control socket: a line that never ends, nonsense, silence
for line in b"x" * 5000, b"nonsense\n", b"\n", b"dump now\n", b"set\n", b"set * * 1025\n":
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(20)
    c.connect(os.path.dirname(sys.argv[2]) + "/control")
    try:
        c.send(line)
        assert c.recv(6) == b"error:", line
    except ConnectionError:
        assert len(line) > 256
END

# it stands still for less than plugins mind (on a busy machine it may be longer: again, then): nobody calls that its end
for _ in 1 2 3 4 5; do
	kill -STOP $PID
	(sleep 0.7; kill -CONT $PID) &
	agent show
	wait $!
	grep -q 'heartbeat is running' "$TMP/out" && break
done
[ $STATUS -eq 0 ] && grep -q 'heartbeat is running' "$TMP/out" || fail "an agent that misses a few heartbeats"

# it hangs: show says so; the others give up
kill -STOP $PID
agent show
[ $STATUS -eq 0 ] && grep -q 'heartbeat has stopped' "$TMP/out" || fail "a heartbeat that stands still"
agent dump
[ $STATUS -eq 1 ] && grep -q 'does not answer' "$TMP/err" || fail "dump of a hanging agent"
kill -CONT $PID

# a file of another owner is shown to nobody, as plugins do not read it
if [ "$(id -u)" = 0 ]; then
	cp "$HA_NCCL_AGENT_HINTS" "$TMP/foreign"
	chown 12345 "$TMP/foreign"
	HA_NCCL_AGENT_HINTS=$TMP/foreign agent show
	[ $STATUS -eq 1 ] && grep -q "foreign: it is another user's (12345): no plugin reads it" "$TMP/err" || fail "hints of another owner"
fi

# a restart keeps the rules by hand, the slot and its share
kill -9 $PID
wait $PID 2>/dev/null
start
agent dump
json 's["rules"] == ["10.0.0.0/24 * 512"]' || fail "rules after a restart"
json 's["slots"][0]["share"] == 512 and s["slots"][0]["from"] == "inherited" and s["slots"][0]["connections"] == 0' ||
	fail "the slot after a restart"
touch "$TMP/go"
wait $CLIENT
kill $PID
wait $PID
[ $? -eq 0 ] || fail "an orderly end"
PID=0
[ ! -e "$HA_NCCL_AGENT_SOCKET" ] && [ -e "$HA_NCCL_AGENT_HINTS" ] || fail "what is left"
finish
