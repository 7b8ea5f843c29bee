#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ha switches` over InfiniBand: the smpquery of infiniband-diags asks the switches of a fabric that ibsim simulates.

    mlx5_0    ==== port 1 of leaf1, the second of two chips in a box
    mlx5_1    ==== port 7 of leaf2
    mlx4_0:1  ==== port 2 of leaf1, mlx4_0:2 ==== port 8 of leaf2
    mlx5_2    ==== another host, without a switch
    mlx5_3         whose link is down
    mlx5_4         which the fabric does not have: nobody answers its question

To ibsim a host adapter is a node; libumad2sim, its stand-in for the kernel's ib_umad, shows a program one of them, as ibsim0. The
host of several adapters is a sysfs tree of the test's own and a smpquery that attaches the real one to the adapter it is asked for.
Argument: ha."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HA = sys.argv[1]
LIMIT = 120  # seconds; only a hang gets there
DIAGS = "/usr/sbin/smpquery"
BOX, CHIP = "0c42a10300a1b2c0", "0c42a10300a1b2c2"
LEAF2 = "0c42a10300b2c3d0"
NET = """\
switchguid=0x{chip}({chip})
sysimgguid=0x{box}
Switch 41 "leaf1"  # "MF0;leaf1:MQM9700/U2" enhanced port 0 lid 3 lmc 0
[1] "mlx5_0"[1]
[2] "mlx4_0"[1]
[41] "spine"[1]

switchguid=0x{leaf2}({leaf2})
sysimgguid=0x{leaf2}
Switch 41 "leaf2"
[7] "mlx5_1"[1]
[8] "mlx4_0"[2]
[41] "spine"[2]

Switch 8 "spine"
[1] "leaf1"[41]
[2] "leaf2"[41]

Hca 1 "mlx5_0"
[1] "leaf1"[1]

Hca 1 "mlx5_1"
[1] "leaf2"[7]

Hca 2 "mlx4_0"
[1] "leaf1"[2]
[2] "leaf2"[8]

Hca 1 "mlx5_2"
[1] "peer"[1]

Hca 1 "peer"
[1] "mlx5_2"[1]

Hca 1 "mlx5_4"
""".format(chip=CHIP, box=BOX, leaf2=LEAF2)
SMPQUERY = """\
#!/bin/sh
# -C DEVICE -P PORT ...: who attaches to an adapter sees it as ibsim0, with one port. The directed route names the port that it leaves by.
[ "$1 $3" = "-C -P" ] || exit 2
export SIM_HOST="$2" IBSIM_SOCKNAME={name} LD_PRELOAD={preload}
shift 4
PATH=/usr/sbin:$PATH  # it says its name as it was called
cd {folder} && exec smpquery -C ibsim0 -P 1 "$@"
"""


def must(holds, what):
    if not holds:
        sys.exit("not so: %s" % what)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def find_preload():
    found = glob.glob("/usr/lib/*/umad2sim/libumad2sim.so")
    if not found or not shutil.which("ibsim") or not os.path.exists(DIAGS):
        print("skipped: ibsim-utils or infiniband-diags is not installed: scripts/install-deps test")
        sys.exit(77)
    return found[0]


class Fabric:
    """ibsim with the network above; its console is its standard input."""

    def __init__(self, folder):
        self.log = os.path.join(folder, "ibsim.log")
        net = os.path.join(folder, "net")
        write(net, NET)
        self.name = "ibsim-%d" % os.getpid()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["ibsim", "-s", net], stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                                            env=dict(os.environ, IBSIM_SOCKNAME=self.name))
        until = time.monotonic() + LIMIT
        while not self.is_ready():
            must(self.process.poll() is None and time.monotonic() < until, "ibsim starts")
            time.sleep(0.02)

    def is_ready(self):
        with open(self.log, encoding="utf-8") as f:
            return "Network simulator ready" in f.read()

    def command(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        self.process.kill()
        self.process.wait()


def make_host(folder, fabric, preload):
    """Its sysfs tree and its smpquery."""
    for device, port, state in (("mlx5_0", 1, "5: LinkUp"), ("mlx5_1", 1, "5: LinkUp"), ("mlx4_0", 1, "5: LinkUp"), ("mlx4_0", 2, "5: LinkUp"),
                                ("mlx5_2", 1, "5: LinkUp"), ("mlx5_3", 1, "2: Polling"), ("mlx5_4", 1, "5: LinkUp")):
        tree = "%s/root/sys/class/infiniband/%s/ports/%d/" % (folder, device, port)
        write(tree + "link_layer", "InfiniBand\n")
        write(tree + "phys_state", state + "\n")
    os.makedirs(folder + "/root/sys/class/infiniband_mad")
    wrapper = folder + "/bin/smpquery"
    write(wrapper, SMPQUERY.format(name=fabric.name, preload=preload, folder=folder))
    os.chmod(wrapper, 0o755)


def ask(folder, *options):
    env = dict(os.environ, HA_NCCL_SYSFS_ROOT=folder + "/root", PATH="%s/bin:%s" % (folder, os.environ["PATH"]))
    done = subprocess.run([HA, "switches", *options], env=env, capture_output=True, text=True, timeout=LIMIT)
    must(done.returncode == 0, "ha switches: %d, %s%s" % (done.returncode, done.stdout, done.stderr))
    return done.stdout


def ask_json(folder):
    return {p["device"]: p for p in json.loads(ask(folder, "--json"))["ports"]}


def check_found(port, switch, number, name):
    must(port["answer"] == "found" and port["link_layer"] == "InfiniBand" and port["source"] == "smpquery", port)
    must((port["switch"], port["switch_port"], port["switch_name"]) == ("guid:" + switch, number, name), port)


def check_none(port, answer, why):
    must(port["answer"] == answer and why in port["why"], port)


def main():
    preload = find_preload()
    folder = tempfile.mkdtemp()
    fabric = Fabric(folder)
    try:
        make_host(folder, fabric, preload)
        ports = ask_json(folder)
        check_found(ports["mlx5_0:1"], BOX, "1", "MF0;leaf1:MQM9700/U2")
        check_found(ports["mlx5_1:1"], LEAF2, "7", "leaf2")
        check_found(ports["mlx4_0:1"], BOX, "2", "MF0;leaf1:MQM9700/U2")
        check_found(ports["mlx4_0:2"], LEAF2, "8", "leaf2")
        check_none(ports["mlx5_2:1"], "none", "its neighbor is no switch but a Channel Adapter")
        check_none(ports["mlx5_3:1"], "none", "its link is down")
        check_none(ports["mlx5_4:1"], "not_asked", "smpquery: iberror: failed: operation nodeinfo: node info query failed")

        # a cable is pulled, of which the host's own port does not know yet
        fabric.command('Unlink "leaf2"[7]')
        until = time.monotonic() + LIMIT
        while ask_json(folder)["mlx5_1:1"]["answer"] == "found":
            must(time.monotonic() < until, "the cable is pulled")
        written = folder + "/switches"
        table = ask(folder, "--write=" + written)
        with open(written, encoding="utf-8") as f:
            lines = [line.split() for line in f if not line.startswith("#")]
        must(["mlx5_0:1", "guid:" + BOX, "1", "smpquery", "MF0;leaf1:MQM9700/U2"] in lines, lines)
        must(["mlx4_0:2", "guid:" + LEAF2, "8", "smpquery", "leaf2"] in lines, lines)
        must("mlx5_1:1" not in [line[0] for line in lines] and "node info query failed" in table, table)
    finally:
        fabric.end()
        shutil.rmtree(folder)


main()
