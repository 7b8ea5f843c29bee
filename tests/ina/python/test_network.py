#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A training over everything: ha-controller, ha-switch, two ha-backend on hosts of their own (network namespaces, veth), two ranks on each.

One frame in a hundred is lost, one repeated, one late; the switch is killed in the middle of the training, and comes back after it.
As root. test_network.py BUILD
"""

import os
import re
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "netns"))

import job
import checks
import netccl
import ranks
import spaces
import test_training
import torch
import torch.distributed as dist

HOSTS, RANKS = 2, 4
SILENT = "was silent for its limit"  # why a group has ended, as its status says


class Network:
    def __init__(self, build):
        self.build, self.folder, self.processes = build, spaces.folder("netccl-network-"), {}
        self.leaf, self.hosts = spaces.Space(), [spaces.Space() for _ in range(HOSTS)]

    def _daemon(self, name, space, program, *words):
        popen = space.popen if space else spaces.popen
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.processes[name] = popen(os.path.join(self.build, program), *words, stdout=log, stderr=log,
                                         env=dict(os.environ, HA_NCCL_DEBUG="2"))

    def _listens(self, path, kind):
        end = time.monotonic() + 60
        while True:
            with socket.socket(socket.AF_UNIX, kind) as s:
                try:
                    return s.connect(path)
                except OSError:
                    assert time.monotonic() < end, path + ": nobody listens"
                    time.sleep(0.05)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self):
        for i, host in enumerate(self.hosts):
            spaces.ip("link", "add", "a%d" % i, "netns", host, "type", "veth", "peer", "name", "b%d" % i, "netns", self.leaf)
            host.ip("addr", "add", "10.0.0.%d/24" % (i + 1), "dev", "a%d" % i)
            host.ip("link", "set", "a%d" % i, "up")
            self.leaf.ip("link", "set", "b%d" % i, "up")
        with open(self.path("settings"), "w") as f:
            f.write("switch leaf address 10.0.0.254 slots 4096 serves 10.0.0.0/24 registers\nregister any\n"
                    "lease 1 3600 86400\nlate 1\nsilence 2\nlength 256\n")
        self._daemon("controller", None, "ha-controller", "--settings=" + self.path("settings"), "--database=" + self.path("db"),
                     "--listen=unix:" + self.path("controller"), "--metrics=none")
        self._listens(self.path("controller"), socket.SOCK_STREAM)
        self.switch()
        for i in range(HOSTS):
            self._daemon("backend%d" % i, self.hosts[i], "ha-backend", "--bind=10.0.0.%d" % (i + 1), "--net=packet",
                         "--controller=unix:" + self.path("controller"), "--socket=" + self.path("ina%d" % i), "--workers=1",
                         "--lease=3", "--memory=64", "--metrics=none", "--idle-us=200")
            self._listens(self.path("ina%d" % i), socket.SOCK_SEQPACKET)

    def switch(self):
        ports = ["--port=net_af_packet%d,iface=b%d" % (i, i) for i in range(HOSTS)]
        self._daemon("switch", self.leaf, "ha-switch", "--address=10.0.0.254", "--name=leaf",
                     "--controller=unix:" + self.path("controller"), "--slots=4096", "--memory=64", "--idle-us=100", "--metrics=none",
                     "--fault=loss=0.01,duplicate=0.01,reorder=0.01,seed=7", *ports)

    def logs(self):
        for name in sorted(n for n in os.listdir(self.folder) if n.endswith(".log")):
            with open(self.path(name), errors="replace") as f:
                sys.stderr.write("--- %s\n%s" % (name, "".join(f.readlines()[-25:])))

    def stood_still(self):
        """What the controller's log says of that; None: it has not."""
        with open(self.path("controller.log"), errors="replace") as f:
            found = re.findall(r"it (stood still for [0-9.]+ s)", f.read())
        return found[-1] if found else None

    def stop(self):
        for process in self.processes.values():
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _until_back(seconds=60):
    """Operations until the group is in the network; all ranks the same number of them."""
    end = time.monotonic() + seconds
    while True:
        there = torch.tensor([int(netccl.status()["in_network"]), int(time.monotonic() < end)])
        netccl.fallback_broadcast(there, 0)
        if there[0]:
            return
        assert there[1], netccl.status()
        t = torch.ones(10)
        dist.all_reduce(t)
        assert float(t[0]) == RANKS
        time.sleep(0.02)


def _rank(rank, n, folder, port, network):
    os.environ.update(NETCCL_BACKEND=network.path("ina%d" % (rank * HOSTS // n)), NETCCL_RETRY_OPS="8")
    job.start(rank, n, folder, port=port)
    _until_back()  # a switch that has just come up has no groups for a moment
    for call in checks.calls(rank, n, "block", 3000):
        call()
    before = netccl.status()

    def each(step):
        if step == test_training.STEPS // 2 and rank == 0:
            os.kill(network.processes["switch"].pid, signal.SIGKILL)

    ours = test_training._curve(test_training.spirals, rank, n, each)
    s = netccl.status()
    assert s["recovered"] > before["recovered"] and s["network"] >= before["network"] + test_training.STEPS // 2, (before, s)
    if rank == 0:
        network.switch()
    _until_back()
    before = netccl.status()
    for call in checks.calls(rank, n, "block", 3000):
        call()
    assert netccl.status()["network"] >= before["network"] + 5, (before, netccl.status())
    dist.destroy_process_group()
    if rank == 0:
        network.processes["switch"].kill()
    job.start(rank, n, folder, init_method="file://%s/second" % folder, enable_inc=False)
    gloos = test_training._curve(test_training.spirals, rank, n)
    apart = test_training._apart(ours, gloos)
    if rank == 0:
        print("%d steps, the switch killed at %d: loss %.4f to %.4f, at most %.2g from gloo's" % (
            test_training.STEPS, test_training.STEPS // 2, ours[0], ours[-1], apart))
    assert apart < 1e-5, apart
    dist.destroy_process_group()


network = Network(sys.argv[1])
try:
    network.start()
    ranks.run(_rank, RANKS, job.free_port(), network, folder=network.folder)
except BaseException as failure:
    network.logs()
    still = network.stood_still()
    if still and SILENT in str(failure):  # which is real time; anything else, above all a wrong sum, is a failure
        print("machine too busy: the controller " + still, flush=True)
        sys.exit(75)
    raise
finally:
    network.stop()
