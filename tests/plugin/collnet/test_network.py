#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""CollNet over the daemons themselves: `ha perf collnet` drives the plugin as NCCL's proxy does, or NCCL itself drives it (`ha nccl`); the ranks are
clients of real ha-backends.

Sums follow each other, and every element of every one is verified; the rails are the software NIC's. In the middle something is killed. Nobody may hang, the
ranks must go on over their rails, and return to the switch when it is back.

Usage: test_network.py BUILD memif|packet|xdp SCENARIO [NCCL-VERSION]     scenarios are the functions below; as root, but for memif
"""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ina"))
import daemons

LOOK_S, LOOKS = 0.05, 25  # somewhat more than what a switch has for its answer
STARVED_S = 0.5
WAIT_LIMIT = 60  # seconds for anything to come; beside other work
MADE = "are made by the switch"  # a rank says so whenever it goes there
LEFT = "the switch has left us"
FINISHED = "are finished over the rails"


def check_starved(first, last):
    """Ends the test where a daemon had no processor, while it was to answer."""
    for name in first.keys() & last.keys():
        ran, waited = (last[name][i] - first[name][i] for i in range(2))
        if waited > STARVED_S and ran < waited / 10:
            print("machine too busy: %s ran for %.2f s and waited %.2f s for a processor" % (name, ran, waited), flush=True)
            sys.exit(75)


class Ranks:
    """`ha perf collnet`, or `ha nccl all_reduce` by NCCL's chain over CollNet; each rank a process of its own, spread over the hosts."""

    version = None  # of NCCL; None: `ha perf`

    def __init__(self, network, n, size="3M", silence_ms=15000):
        self.network, self.n = network, n
        one, two = divmod(os.getpid() % 62500, 250)  # an address and subnets that no other test can choose
        for r in range(n):
            network.start("rank%d" % r, network.build + "/ha", *self.command(), "--ranks", str(n), "--rank", str(r), "--rendezvous", "127.177.%d.%d:20000" % (one, two + 1),
                          "-b", size, "-e", size, "--duration", "600s",
                          env={"HA_NCCL_VERBS": "soft", "SOFTROCE_DEVICES": "127.175.%d.0/24,127.176.%d.0/24" % (two, two), "NCCL_DEBUG": "INFO", "HA_NCCL_DEBUG": "",
                               "NCCL_COLLNET_ENABLE": "1", "HA_NCCL_COLLNET": "1", "NETCCL_BACKEND": network.socket(r % network.hosts), "HA_NCCL_COLLNET_TIMEOUT_MS": str(silence_ms),
                               **self.environment(r)})

    def command(self):
        return ["nccl", "all_reduce", "--nccl", self.version, "--net", "hawser", "--one-scale", "-T", "120"] if self.version else ["perf", "collnet", "--buffsize", "40M"]

    def environment(self, r):
        # One GPU on each emulated host, so that every sum goes over CollNet; NCCL's own log comes to where the rank's other lines are.
        return {"NCCL_ALGO": "CollnetChain", "NCCL_PROTO": "Simple", "NCCL_HOSTID": "%s-%d" % (self.network.top, r), "NCCL_DEBUG_SUBSYS": "INIT,NET,TUNING",
                "NCCL_DEBUG_FILE": self.network.path("rank%d.log" % r) + ".nccl"} if self.version else {}

    def said(self, r):
        text = ""
        for name in ("rank%d.log" % r, "rank%d.log.nccl" % r):
            if os.path.exists(self.network.path(name)):
                with open(self.network.path(name), errors="replace") as f:
                    text += f.read()
        return text

    def essence(self, r):
        return "\n".join(line for line in self.said(r).splitlines() if "Bytes -> Algo" not in line)[-6000:]

    def count(self, text):
        return [self.said(r).count(text) for r in range(self.n)]

    def until(self, text, times):
        """Every rank has said it so often."""
        end = time.monotonic() + WAIT_LIMIT
        while min(self.count(text)) < times:
            for r in range(self.n):
                assert self.network.processes["rank%d" % r].poll() is None, "rank %d has ended:\n%s" % (r, self.essence(r))
            assert time.monotonic() < end, "'%s' %s times, not %d" % (text, self.count(text), times)
            time.sleep(0.02)

    def on_the_switch(self, times):
        """They have gone there so often, and words have come from it since."""
        self.until(MADE, times)
        before, end = self.network.traffic(0), time.monotonic() + WAIT_LIMIT
        while self.network.traffic(0) == before:
            assert time.monotonic() < end, "no sum from the switch"
            time.sleep(0.02)

    def leave(self, blow):
        """What the blow must do: some rank says that the switch has gone, and notifies the others."""
        before, end = sum(self.count(LEFT)), time.monotonic() + WAIT_LIMIT
        blow()
        while sum(self.count(LEFT)) == before:
            assert time.monotonic() < end, "nobody has noticed"
            time.sleep(0.02)

    def stays(self, seconds):
        """On the switch, all that time."""
        before, end, looks = (self.count(LEFT), self.count(MADE)), time.monotonic() + seconds, []
        while not looks or time.monotonic() < end:
            looks = [self.network.scheduled()] + looks[:LOOKS]
            time.sleep(LOOK_S)
            if (self.count(LEFT), self.count(MADE)) != before:
                check_starved(looks[-1], self.network.scheduled())
                raise AssertionError("the switch was left")

    def end(self):
        """In order: rank 0 notifies the others. Before the measured time begins, ^C would end it at once."""
        limit = time.monotonic() + WAIT_LIMIT
        while self.version and self.said(0).count("Bytes -> Algo") < 20:
            assert time.monotonic() < limit, "the ranks do not begin"
            time.sleep(0.02)
        self.network.processes["rank0"].send_signal(signal.SIGINT)
        for r in range(self.n):
            p = self.network.processes.pop("rank%d" % r)
            assert p.wait(timeout=WAIT_LIMIT) == 0, "rank %d ended with %d:\n%s" % (r, p.returncode, self.essence(r))
        text = self.said(0)
        assert "# Out of bounds values : 0 OK" in text, text[-2000:]
        if self.version:
            assert re.search(r"Algo (COLLNET_CHAIN|3) ", text), "NCCL did not use CollNet"
            return "%d sums, none wrong; on the switch %d times" % (text.count("Bytes -> Algo"), self.count(MADE)[0])
        row = re.search(r"^ +\d+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) +(\d+) +(\d+) +0$", text, re.M)
        assert row and int(row[3]) >= self.n, text[-2000:]
        return "%s sums verified by all ranks together, none wrong; the longest took %s ms; on the switch %d times" % (row[3], row[1], self.count(MADE)[0])


def loss(network):
    """One packet in a hundred is lost (and where the switch can, repeated and late): the switch is not left for that."""
    ranks = Ranks(network, 4, "1M")
    ranks.on_the_switch(1)
    ranks.stays(2)
    return ranks.end()


def switch(network):
    """The switch is killed in the middle of sums, and started again."""
    ranks = Ranks(network, network.hosts if Ranks.version else 4)
    ranks.on_the_switch(1)
    network.kill("switch")
    ranks.until(FINISHED, 1)
    network.switch_start()
    ranks.on_the_switch(2)
    return ranks.end()


def backend(network):
    """A backend is killed in the middle of sums, and started again; then the first rank's, who asks for groups."""
    ranks = Ranks(network, network.hosts)
    ranks.on_the_switch(1)
    for n, victim in enumerate((network.hosts - 1, 0), 1):
        ranks.leave(lambda: network.kill("backend%d" % victim))
        network.backend_start(victim)
        ranks.on_the_switch(n + 1)
    return ranks.end()


def hung(network):
    """A backend hangs, and is asked all the time to let its rank in again: sums go on over the rails, until it goes on itself."""
    ranks = Ranks(network, network.hosts, silence_ms=2000)
    ranks.on_the_switch(1)
    victim = "backend%d" % (network.hosts - 1)
    ranks.leave(lambda: network.send_signal_to(victim, signal.SIGSTOP))
    time.sleep(4)
    assert max(ranks.count(MADE)) == 1, "on the switch with a backend that hangs"
    network.send_signal_to(victim, signal.SIGCONT)
    ranks.on_the_switch(2)
    return ranks.end()


def controller(network):
    """The controller is killed: sums go on, also when it is back. Killed once more, and the switch with it: the rails, until both are back."""
    ranks = Ranks(network, network.hosts)
    ranks.on_the_switch(1)
    network.kill("controller")
    ranks.stays(2.5)  # more than a lease
    network.controller_start()
    ranks.stays(1)
    network.kill("controller")
    network.kill("switch")
    ranks.until(FINISHED, 1)
    network.switch_start()
    time.sleep(0.5)
    assert max(ranks.count(MADE)) == 1, "a group without a controller"
    network.controller_start()
    ranks.on_the_switch(2)
    return ranks.end()


def main():
    build, kind, name = os.path.abspath(sys.argv[1]), *sys.argv[2:4]
    if len(sys.argv) > 4:
        Ranks.version = sys.argv[4]
        if not os.path.exists("%s/softcuda/nccl-%s/libnccl.so.2" % (build, Ranks.version)):
            print("skipped: NCCL %s is not there; `scripts/install-deps nccl-all` fetches it" % Ranks.version)
            return 77
    fault = {"loss": "loss=0.01" if kind == "xdp" else "loss=0.01,duplicate=0.01,reorder=0.01,seed=7"}.get(name, "")
    # Nobody dies of lost packets: only a hang gets to these limits, which are short where something is killed.
    calm = {"lease": 60, "answer": 20} if name == "loss" else {}
    with daemons.Network(build, kind, 4 if kind == "xdp" else 2, fault, **calm) as network:
        begin = time.monotonic()
        print("%s, %s: %s; %.1f s" % (kind, name, {"loss": loss, "switch": switch, "backend": backend, "hung": hung, "controller": controller}[name](network),
                                      time.monotonic() - begin))
    return 0


sys.exit(main())
