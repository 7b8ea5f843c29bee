#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ha switches` with real LLDP daemons: a host and two switches in network namespaces, joined by veth, an lldpd in each.

    host  e0 ==== swp1 leaf1    mlx5_0
          e1 ==== swp2 leaf1    mlx5_1
          e2 ==== swp1 leaf2    mlx5_2
          e3 ==== nothing       mlx5_3
          e4, where lldpd does not listen: mlx5_4
    bond0 of e0 and e2          mlx5_bond_0
    a virtual function          mlx5_vf, of mlx5_1

A sysfs tree of the test's own says which interface an RDMA device has. The frames that lldpd sends are caught, too, and put where
systemd-networkd keeps them: the answers are the same. Argument: ha. As root."""

import atexit
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "netns"))
import spaces  # noqa: E402

HA = sys.argv[1]
LIMIT = 120  # seconds; only a hang gets there
LINKS = [("e0", "leaf1", "swp1"), ("e1", "leaf1", "swp2"), ("e2", "leaf2", "swp1")]
DEVICES = {"mlx5_0": "e0", "mlx5_1": "e1", "mlx5_2": "e2", "mlx5_3": "e3", "mlx5_4": "e4", "mlx5_bond_0": "bond0"}
LLDP = 0x88CC


def must(holds, what):
    if not holds:
        sys.exit("not so: %s" % what)


def await_(holds, what):
    until = time.monotonic() + LIMIT
    while not holds():
        must(time.monotonic() < until, what)
        time.sleep(0.2)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


class Host:
    """A namespace with an lldpd of its own; a switch has a bridge, whose ports are its links."""

    def __init__(self, name, folder, switch):
        self.name, self.space = name, spaces.Space()
        self.socket = os.path.join(folder, name + ".sock")
        self.bridge = switch
        if switch:
            self.space.ip("link", "add", "br0", "type", "bridge")
            self.space.ip("link", "set", "br0", "up")

    def up(self, interface):
        self.space.ip("link", "set", interface, "up")
        if self.bridge:
            self.space.ip("link", "set", interface, "master", "br0")

    def start(self, folder):
        conf = os.path.join(folder, self.name + ".conf")
        write(conf, "configure lldp tx-interval 1\nconfigure system hostname %s\n" % self.name +
              ("" if self.bridge else "configure ports e4 lldp status disabled\n"))
        script = "mount -t tmpfs tmpfs /run && mkdir -p /run/lldpd && exec lldpd -d -u %s -O %s" % (self.socket, conf)
        with open(os.path.join(folder, self.name + ".log"), "w", encoding="utf-8") as log:
            self.daemon = self.space.popen("unshare", "--mount", "--propagation", "private", "sh", "-c", script, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log)
        atexit.register(self.stop)

    def stop(self):
        """Its monitor; the process that this watches ends with it."""
        self.daemon.kill()
        self.daemon.wait()

    def chassis(self):
        """As the daemon itself names it: "mac:..."."""
        out = self.space.run("lldpcli", "-u", self.socket, "-f", "json0", "show", "chassis", capture_output=True, text=True).stdout
        one = json.loads(out)["local-chassis"][0]["chassis"][0]["id"][0]
        return "%s:%s" % (one["type"], one["value"])


def make_tree(root):
    for n, (device, interface) in enumerate(DEVICES.items()):
        port = "%s/sys/class/infiniband/%s/ports/1" % (root, device)
        write(port + "/link_layer", "Ethernet\n")
        write(port + "/gid_attrs/ndevs/0", interface + "\n")
        write("%s/sys/class/net/%s/ifindex" % (root, interface), "%d\n" % (10 + n))
    write("%s/sys/class/net/bond0/bonding/slaves" % root, "e0 e2\n")
    write("%s/sys/class/infiniband/mlx5_vf/ports/1/link_layer" % root, "Ethernet\n")
    os.makedirs("%s/sys/class/infiniband/mlx5_vf/device/physfn/infiniband/mlx5_1" % root)


class Asked:
    def __init__(self, host, root):
        self.host, self.root = host, root

    def run(self, *words, under=()):
        return self.host.space.run(*under, HA, "switches", "--lldpd-socket", self.host.socket, *words, capture_output=True, text=True,
                                   env=dict(os.environ, HA_NCCL_SYSFS_ROOT=self.root))

    def ports(self):
        done = self.run("--json")
        must(done.returncode <= 1, "--json: %s" % done.stderr)  # 1: nobody could be asked, yet
        return {port["device"]: port for port in json.loads(done.stdout)["ports"]}


def check_ports(ports, leaf1, leaf2, source):
    must(ports["mlx5_0:1"] == {"device": "mlx5_0:1", "link_layer": "RoCE", "interfaces": ["e0"], "answer": "found", "switch": leaf1,
                               "switch_name": "leaf1", "switch_port": "swp1", "source": source, "why": None}, "mlx5_0: %s" % ports["mlx5_0:1"])
    for device, switch, name, port in (("mlx5_1:1", leaf1, "leaf1", "swp2"), ("mlx5_vf:1", leaf1, "leaf1", "swp2"), ("mlx5_2:1", leaf2, "leaf2", "swp1")):
        is_ = ports[device]
        must((is_["switch"], is_["switch_name"], is_["switch_port"], is_["source"]) == (switch, name, port, source), "%s: %s" % (device, is_))
    bond = ports["mlx5_bond_0:1"]
    must(bond["answer"] == "several" and bond["interfaces"] == ["e0", "e2"] and "leaf1" in bond["why"] and "leaf2" in bond["why"], bond)


def catch_frames(host, interfaces):
    """The next LLDP frame of a neighbor on each interface."""
    frames = {}
    with host.space.here():
        sockets = {}
        for interface in interfaces:
            sockets[interface] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(LLDP))
            sockets[interface].bind((interface, LLDP))
            sockets[interface].settimeout(LIMIT)
    for interface, s in sockets.items():
        while interface not in frames:
            frame, where = s.recvfrom(2000)
            if where[2] != socket.PACKET_OUTGOING:
                frames[interface] = frame
        s.close()
    return frames


def check_files(asked, folder, leaf1, leaf2):
    path = os.path.join(folder, "switches")
    done = asked.run("--write", path)
    must(done.returncode == 0 and "leaf1" in done.stdout, "--write: %s" % done.stderr)
    must(stat.S_IMODE(os.stat(path).st_mode) == 0o644, "the file's mode")
    must([name for name in os.listdir(folder) if name.startswith("switches")] == ["switches"], "nothing is left beside it")
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    must(lines[0] == "# hawser switches 1", lines)
    must([line for line in lines if not line.startswith("#")] ==
         ["mlx5_0:1 %s swp1 lldpd leaf1" % leaf1, "mlx5_1:1 %s swp2 lldpd leaf1" % leaf1, "mlx5_2:1 %s swp1 lldpd leaf2" % leaf2,
          "mlx5_3:1 - - lldpd -", "mlx5_bond_0:1 - - lldpd -", "mlx5_vf:1 %s swp2 lldpd leaf1" % leaf1], "the file: %s" % lines)  # of mlx5_4 nobody was asked
    done = asked.run("--write", os.path.join(folder, "nowhere", "switches"))
    must(done.returncode == 1 and "No such file or directory; run it as root" in done.stderr and done.stderr.count("\n") == 1, done.stderr)


def main():
    for program in ("lldpd", "lldpcli"):
        if not shutil.which(program):
            print("skipped: no %s; scripts/install-deps test" % program)
            sys.exit(77)
    folder = spaces.folder("hawser-switches-")
    os.chmod(folder, 0o711)  # Debian's lldpcli runs as lldpd's user
    try:
        host = Host("host", folder, False)
    except OSError as error:
        print("skipped: %s" % error)
        sys.exit(77)
    leaves = {name: Host(name, folder, True) for name in ("leaf1", "leaf2")}
    for interface, leaf, port in LINKS:
        host.space.ip("link", "add", interface, "type", "veth", "peer", "name", port, "netns", str(leaves[leaf].space))
        host.up(interface)
        leaves[leaf].up(port)
    for interface in ("e3", "e4"):
        host.space.ip("link", "add", interface, "type", "veth", "peer", "name", interface + "p")
        host.up(interface)
    for one in (host, *leaves.values()):
        one.start(folder)
    root = os.path.join(folder, "root")
    make_tree(root)
    asked = Asked(host, root)
    await_(lambda: all(os.path.exists(one.socket) for one in (host, *leaves.values())), "the daemons listen")
    await_(lambda: all(asked.ports()[d + ":1"]["answer"] == "found" for d in ("mlx5_0", "mlx5_1", "mlx5_2")) and
           asked.ports()["mlx5_2:1"]["switch_name"] == "leaf2", "the neighbors are there")
    leaf1, leaf2 = (leaves[name].chassis() for name in ("leaf1", "leaf2"))
    ports = asked.ports()
    check_ports(ports, leaf1, leaf2, "lldpd")
    must(ports["mlx5_3:1"]["answer"] == "none" and ports["mlx5_3:1"]["why"] == "no neighbor", ports["mlx5_3:1"])
    must(ports["mlx5_4:1"]["answer"] == "not_asked" and "neither lldpd nor networkd listens on e4" in ports["mlx5_4:1"]["why"], ports["mlx5_4:1"])
    check_files(asked, folder, leaf1, leaf2)
    # as hawser-switches.service restricts it
    done = asked.run(under=("setpriv", "--no-new-privs", "--bounding-set=-all,+dac_override"))
    must(done.returncode == 0 and "leaf2" in done.stdout, "restricted: %s%s" % (done.stdout, done.stderr))

    # A neighbor that is no switch: the leaf sees the host, a station.
    tree = os.path.join(folder, "leaf")
    write(tree + "/sys/class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet\n")
    write(tree + "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "swp1\n")
    await_(lambda: "is no switch" in (Asked(leaves["leaf2"], tree).ports()["mlx5_0:1"]["why"] or ""), "the host is no switch")

    # The same frames as systemd-networkd keeps them, without lldpd.
    for interface, frame in catch_frames(host, ["e0", "e1", "e2"]).items():
        with open("%s/sys/class/net/%s/ifindex" % (root, interface), encoding="utf-8") as f:
            path = "%s/run/systemd/netif/lldp/%d" % (root, int(f.read()))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(frame)) + frame)
    host.stop()
    await_(lambda: asked.ports()["mlx5_0:1"]["source"] == "networkd", "lldpd has gone")
    ports = asked.ports()
    check_ports(ports, leaf1, leaf2, "networkd")
    must(ports["mlx5_3:1"]["answer"] == "not_asked" and "lldpcli: " in ports["mlx5_3:1"]["why"], ports["mlx5_3:1"])


main()
