# SPDX-License-Identifier: BSD-3-Clause
"""The daemons of in-network aggregation on this machine, for tests: ha-controller, one switch, an ha-backend for each host.

Kinds: memif (ha-switch and backends on DPDK's memif: no namespaces), packet (ha-switch on DPDK's af_packet, backends on AF_PACKET, veth between network
namespaces), xdp (ha-switch-xdp, the same otherwise). Anything may be killed and started again. Needs root, but for memif.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "netns"))
from spaces import Space, folder, ip, popen

SWITCH = "10.0.0.254"


def read(path):
    with open(path) as f:
        return f.read()


class Network:
    def __init__(self, build, kind, hosts, fault="", lease=2, answer=1):
        """In seconds: `lease`, within which each rank must join and renew, or the group ends; `answer`, after which a silent switch is left."""
        self.build, self.kind, self.hosts, self.fault = build, kind, hosts, fault
        self.limits = "--lease=%d" % lease, "--switch-timeout=%d" % answer
        self.top = folder("hawser-ina-")
        self.processes, self.spaces = {}, {}

    # ---- the whole ----

    def __enter__(self):
        try:
            if self.kind != "memif":
                self._links()
            self.controller_start()
            self.switch_start()
            for i in range(self.hosts):
                self.backend_start(i)
            self.switch_is_known()
        except BaseException:
            self.logs()
            self.close()
            raise
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.logs()
        self.close()

    def close(self):
        for p in self.processes.values():
            p.kill()
            p.wait()
        for space in self.spaces.values():
            space.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def logs(self):
        for name in sorted(f for f in os.listdir(self.top) if f.endswith(".log")):
            with open(self.path(name), errors="replace") as f:
                sys.stderr.write("--- %s\n%s" % (name, "".join(f.readlines()[-25:])))

    def path(self, name):
        return os.path.join(self.top, name)

    # ---- processes ----

    def start(self, name, *words, space=None, env=None):
        """Its words go to NAME.log."""
        with open(self.path(name + ".log"), "ab") as log:
            self.processes[name] = (space.popen if space else popen)(*words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                                     env={**os.environ, "HA_NCCL_DEBUG": "2", **(env or {})})
        return self.processes[name]

    def send_signal_to(self, name, what):
        """To the program itself: what puts it into its namespace becomes it."""
        assert self.processes[name].poll() is None, name + " has ended before"
        self.processes[name].send_signal(what)

    def kill(self, name, how=signal.SIGKILL):
        p = self.processes.pop(name)
        assert p.poll() is None, name + " has ended before"
        p.send_signal(how)
        return p.wait(timeout=300)

    def _listens(self, name, path, kind):
        """What a killed process left there is no sign of activity."""
        until = time.monotonic() + 60
        while True:
            with socket.socket(socket.AF_UNIX, kind) as s:
                try:
                    return s.connect(path)
                except OSError:
                    assert self.processes[name].poll() is None and time.monotonic() < until, name + " does not start"
                    time.sleep(0.02)

    def controller_start(self):
        with open(self.path("settings"), "w") as f:
            f.write("switch leaf address %s slots 4096 serves 10.0.0.0/24 registers\nregister any\nlease 1 3600 86400\nlate 1\nsilence 1\nlength 256\n" % SWITCH)
        self.start("controller", self.build + "/ha-controller", "--settings=" + self.path("settings"), "--database=" + self.path("db"),
                   "--listen=unix:" + self.path("controller"), "--metrics=none")
        self._listens("controller", self.path("controller"), socket.SOCK_STREAM)

    def switch_start(self):
        common = ["--address=" + SWITCH, "--name=leaf", "--controller=unix:" + self.path("controller"), "--slots=4096"]
        if self.fault:
            common.append("--fault=" + self.fault)
        if self.kind == "xdp":
            words = [self.build + "/ha-switch-xdp", *common, *("--port=p%d" % i for i in range(self.hosts))]
        else:
            port = {"packet": "net_af_packet%d,iface=p%d", "memif": "net_memif%d,role=server,socket=" + self.path("memif%d") + ",socket-abstract=no"}[self.kind]
            words = [self.build + "/ha-switch", *common, "--memory=64", "--idle-us=100", "--metrics=none", *("--port=" + port % (i, i) for i in range(self.hosts))]
        self.start("switch", *words, space=self.spaces.get("switch"))

    def switch_is_known(self):
        """The controller has learned of it, and gives groups."""
        until = time.monotonic() + 60
        while True:
            made = subprocess.run([self.build + "/ha", "ina", "create", "10.0.0.1,10.0.0.2", "--lease=1", "--controller=unix:" + self.path("controller")],
                                  text=True, capture_output=True, check=False)
            if not made.returncode:
                return
            assert time.monotonic() < until, made.stderr
            time.sleep(0.05)

    def backend_start(self, i):
        card = "--net=packet"
        if self.kind == "memif":
            card = "--port=net_memif0,role=client,socket=%s,socket-abstract=no,mac=02:00:00:00:01:%02x" % (self.path("memif%d" % i), i)
        self.start("backend%d" % i, self.build + "/ha-backend", "--bind=10.0.0.%d" % (i + 1), "--controller=unix:" + self.path("controller"),
                   "--socket=" + self.socket(i), "--workers=1", "--log=1", "--peer-timeout=20", "--memory=64", "--metrics=none", "--idle-us=200",
                   *self.limits, card, space=self.spaces.get(i))
        self._listens("backend%d" % i, self.socket(i), socket.SOCK_SEQPACKET)

    def scheduled(self):
        """Name of each daemon -> seconds that its threads, all together, have run, and have waited for a processor."""
        times = {}
        for name, process in self.processes.items():
            if not name.startswith(("switch", "backend")):
                continue
            try:
                threads = [read("/proc/%d/task/%s/schedstat" % (process.pid, t)).split() for t in os.listdir("/proc/%d/task" % process.pid)]
            except (FileNotFoundError, ProcessLookupError):  # it has ended, or one of its threads: the next look has it
                continue
            times[name] = tuple(sum(int(t[i]) for t in threads) / 1e9 for i in range(2))
        return times

    def socket(self, i):
        return self.path("ina%d" % i)

    def traffic(self, i):
        """Of how many seconds of sums in the network that backend has logged."""
        with open(self.path("backend%d.log" % i), errors="replace") as f:
            return f.read().count("SW_TPT")

    # ---- links ----

    def _links(self):
        there = self.spaces["switch"] = Space()
        if self.kind == "xdp":
            there.ip("link", "add", "br0", "type", "bridge")
            there.ip("addr", "add", SWITCH + "/24", "dev", "br0")
            there.ip("link", "set", "br0", "up")
        for i in range(self.hosts):
            here = self.spaces[i] = Space()
            ip("link", "add", "p%d" % i, "netns", there, "type", "veth", "peer", "name", "eth0", "netns", here)
            there.ip("link", "set", "p%d" % i, *(["master", "br0"] if self.kind == "xdp" else []), "up")
            here.ip("addr", "add", "10.0.0.%d/24" % (i + 1), "dev", "eth0")
            here.ip("link", "set", "eth0", "up")
