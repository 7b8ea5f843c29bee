#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ha-switch-xdp with real packets: four ranks, each in a network namespace of its own, over veth to a switch in another one. As root.

  rank 0 (10.77.0.1) ──veth──┐
  rank 1 (10.77.0.2) ──veth──┤ br0, 10.77.0.254, ha-switch-xdp on every port
  rank 2 (10.77.0.3) ──veth──┤
  rank 3 (10.77.0.4) ──veth──┘

Usage: test_switch.py PROGRAMS CASE     PROGRAMS: the folder of ha-switch-xdp and ina-rank; cases are the functions below
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "netns"))
from spaces import Space, folder, ip

SWITCH, HOSTS, PACKETS = "10.77.0.254", 4, 2000
TIME_LIMIT = 60  # seconds for anything to come; beside other work
GROUPS = """# one of each kind
group 7 epoch 3 slots 0 64 workers 1 members 10.77.0.1 10.77.0.2 10.77.0.3 10.77.0.4
group 8 epoch 1 slots 64 32 frames old workers 1 members 10.77.0.1 10.77.0.2 10.77.0.3 10.77.0.4
# two ranks on one host
group 9 epoch 1 slots 128 32 workers 1 members 10.77.0.1 10.77.0.1 10.77.0.3
"""
SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (sys.argv[1], 9))"
METRICS = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9844/metrics').read().decode(), end='')"


def until(what, condition):
    end = time.monotonic() + TIME_LIMIT
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


class Rig:
    def __init__(self, programs):
        self.programs, self.top = programs, folder("hawser-xdp-")
        self.groups = self.path("groups")
        self.write_groups(GROUPS)
        self.switch, self.there = None, Space()
        self.there.ip("link", "add", "br0", "type", "bridge")
        self.there.ip("addr", "add", SWITCH + "/24", "dev", "br0")
        self.there.ip("link", "set", "br0", "up")
        self.host = [Space() for _ in range(HOSTS)]
        for i, here in enumerate(self.host):
            ip("link", "add", "p%d" % i, "netns", self.there, "type", "veth", "peer", "name", "eth0", "netns", here)
            self.there.ip("link", "set", "p%d" % i, "master", "br0", "up")
            here.ip("addr", "add", "10.77.0.%d/24" % (i + 1), "dev", "eth0")
            here.ip("link", "set", "eth0", "up")

    def path(self, name):
        return os.path.join(self.top, name)

    def write_groups(self, text):
        with open(self.groups, "w") as f:
            f.write(text)

    def logs(self):
        for name in sorted(os.listdir(self.top)):
            sys.stderr.write("--- %s\n%s" % (name, read(self.path(name))))

    # ---- the switch ----

    def command(self, *options):
        return [self.programs + "/ha-switch-xdp", "--address=" + SWITCH, "--groups=" + self.groups, *options]

    def start(self, *options):
        with open(self.path("switch"), "wb") as log:
            self.switch = self.there.popen(*self.command(*("--port=p%d" % i for i in range(HOSTS)), *options), stdout=log, stderr=log)
        until("the groups are not there", self.serves)

    def serves(self):
        assert self.switch.poll() is None, "the switch has ended"
        return len(re.findall("^ha-switch-xdp: group .*: epoch", self.said(), re.M)) == 3

    def said(self):
        return read(self.path("switch"))

    def end(self, how):
        self.switch.send_signal(how)
        return self.switch.wait(timeout=TIME_LIMIT)

    def stop(self):
        status = self.end(signal.SIGTERM)
        assert status == 0, "the switch ended with status %d" % status

    # ---- ranks ----

    def rank(self, host, number, *options):
        """In the background."""
        with open(self.path("rank%d" % number), "wb") as log:
            return self.host[host].popen(self.programs + "/ina-rank", "--interface=eth0", "--switch=" + SWITCH, "--rank=%d" % number, "--time-limit=%d" % TIME_LIMIT,
                                         *options, stdout=log, stderr=log)

    def reduce(self, group, hosts, base, length, *options, packets=PACKETS):
        """A whole all-reduce of a group, its ranks on these hosts: every word is verified by every rank."""
        options = ("--group=%d" % group, "--ranks=%d" % len(hosts), "--base=%d" % base, "--len=%d" % length, "--packets=%d" % packets, *options)
        for n, p in enumerate([self.rank(host, n, *options) for n, host in enumerate(hosts)]):
            assert p.wait(timeout=2 * TIME_LIMIT) == 0, "rank %d ended with status %d" % (n, p.returncode)

    def reduce_7(self, packets=PACKETS):
        self.reduce(7, range(HOSTS), 0, 64, "--epoch=3", packets=packets)


# ---- cases ----

def three_groups(rig, mode):
    rig.start("--mode=" + mode)
    assert "p3: %s XDP" % mode in rig.said(), "not in this mode"
    rig.reduce_7()
    rig.reduce(8, range(HOSTS), 64, 32, "--old")
    rig.reduce(9, (0, 0, 2), 128, 32, "--epoch=1")
    metrics = rig.there.run(sys.executable, "-c", METRICS, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    for line in ('frames_total{reason="complete"} %d' % (3 * PACKETS), 'bad_frames_total{fault="checksum"} 0', "no_room_total 0", "groups 3", "groups_over 0",
                 'port_native{port="p3"} %d' % (mode == "native")):
        assert "hawser_switch_" + line in metrics, "no line '%s' in the metrics:\n%s" % (line, "\n".join(metrics))
    assert any(re.fullmatch("hawser_switch_answers_total [1-9][0-9]*", line) for line in metrics), "no answers in the metrics"
    assert metrics[-1] == "# EOF", "the metrics have no end"
    rig.stop()
    assert re.search("^complete  *%d  " % (3 * PACKETS), rig.said(), re.M), "not %d sums" % (3 * PACKETS)
    assert re.search("^answers ", rig.said(), re.M), "no answers"
    assert not re.search("^no-room", rig.said(), re.M), "no room behind a frame"


def generic(rig):
    three_groups(rig, "generic")


def native(rig):
    for here in rig.host:  # what a veth needs at its other end to take what XDP sends
        assert here.run("ethtool", "-K", "eth0", "gro", "on").returncode == 0
    three_groups(rig, "native")


def native_alone(rig):
    """Answers for one rank come at once, although nothing else goes its way: XDP_TX of a veth does not wake an other end that has no XDP program. A rank
    whose group never comes receives from the switch, again and again, and says so."""
    for here in rig.host:
        assert here.run("ethtool", "-K", "eth0", "gro", "on").returncode == 0
    rig.start("--mode=native")
    lonely = rig.rank(0, 0, "--group=7", "--ranks=4", "--epoch=3", "--base=0", "--len=64", "--time-limit=3")
    assert lonely.wait(timeout=TIME_LIMIT) == 1
    said = read(rig.path("rank0"))
    assert "switch %s answers: another rank" % SWITCH in said, said
    answers = int(re.search("^held ([0-9]+)", said, re.M)[1])
    assert answers > 5, said  # of 30 and more questions
    rig.stop()


def loss(rig):
    rig.start("--fault=loss=0.02")
    rig.reduce_7()
    rig.stop()
    assert re.search("^lost ", rig.said(), re.M), "nothing was lost"


def passes(rig):
    """What is not ours goes on: ARP there and back over the bridge, and a datagram. Unauthenticated peers, a wrong slot, garbage of protocol 253 for us: nobody receives
    anything, and then it works. A switch that is killed takes its program with it."""
    def reached(address):
        rig.host[0].run(sys.executable, "-c", SEND, address)
        return "lladdr" in rig.host[0].run("ip", "neigh", "show", address, stdout=subprocess.PIPE, text=True).stdout

    rig.start()
    for i in range(1, HOSTS):
        address = "10.77.0.%d" % (i + 1)
        until(address + " cannot be reached past the switch", lambda a=address: reached(a))
    foreign = rig.rank(1, 2, "--hostile=1000", "--group=7", "--ranks=4", "--epoch=3", "--base=0", "--len=64")
    assert foreign.wait(timeout=TIME_LIMIT) == 0, "an answer to a foreign sender"
    rig.reduce_7(packets=200)
    rig.end(signal.SIGKILL)
    until("the program stays when the switch is killed",
          lambda: "xdp" not in rig.there.run("ip", "-d", "link", "show", "p0", stdout=subprocess.PIPE, text=True).stdout)


def refusals(rig):
    def says(want, *words, run=subprocess.run):
        p = run(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert p.returncode, "no error: %s" % (words,)
        assert re.search(want, p.stdout), "'%s' is not said: %s" % (want, p.stdout)
        assert p.stdout.count("\n") <= 2, "more than a line and what was opened before: " + p.stdout

    def here(want, *words):  # without a namespace
        says(want, words)

    def there(want, *options):
        says(want, *rig.command(*options), run=rig.there.run)

    program, quiet = rig.programs + "/ha-switch-xdp", "--metrics=none"
    there("--metrics: ", "--port=p0", "--metrics=nowhere")
    there("there is no such interface", quiet, "--port=nowhere")
    here("an IPv4 address", program, "--address=here", "--port=p0", "--groups=x")
    here("whose groups", "env", "-u", "NETCCL_CONTROLLER_ADDR", program, "--address=10.0.0.1", "--port=p0")
    there("native XDP: --mode=generic|does not take an XDP program", quiet, "--port=br0", "--mode=native")
    here("run as root", "setpriv", "--bounding-set=-all", "--inh-caps=-all", program, "--address=10.0.0.1", "--port=lo", "--groups=" + rig.groups)
    rig.start()
    there("has an XDP program already", quiet, "--port=p0")
    rig.stop()
    rig.write_groups("group 300 slots 0 16 members 10.0.0.1 10.0.0.2\n")
    there("groups:1: a line begins with group", quiet, "--port=p0")


def main():
    if os.geteuid():
        sys.exit("%s makes network namespaces: it needs root" % sys.argv[0])
    case = {"generic": generic, "native": native, "native_alone": native_alone, "loss": loss, "passes": passes, "refusals": refusals}[sys.argv[2]]
    rig = Rig(os.path.abspath(sys.argv[1]))
    try:
        case(rig)
    except BaseException:
        rig.logs()
        raise


main()
