# SPDX-License-Identifier: BSD-3-Clause
"""The machines of one topology, plugged together: a management network and a number of rails.

Two machines: each network is a QEMU stream over a Unix socket. More: the first machine's QEMU is the switch of every network (a hub
beside its own NIC), the others plug into it. A switch's port stays up when a machine's own cable is pulled. Joined rails are one
network, as leaf switches behind spines are: any NIC reaches any NIC."""
import os
import re
import time

from channel import TIME_LIMIT, Dead
from machine import Machine

LEFTOVERS = re.compile(r"^(ha|ib_|ibv_)", re.M)
QUIET_LIMIT = 60
BOOTS = 8
PACE_SLACK = 0.05


def plug(folder, network, number, machines, joined=False):
    """QEMU's options of the far end of one NIC."""
    net = "net%d" % network
    hub = 1 if joined and network > 0 else network

    def stream(name, other, server):
        path = os.path.join(folder, "wire.%d.%d" % (network, other))
        return "stream,id=%s,server=%s,addr.type=unix,addr.path=%s" % (name, "on" if server else "off", path)
    if number > 1:
        return ["-netdev", stream(net, number, False)]
    if machines == 2 and not joined:
        return ["-netdev", stream(net, 2, True)]
    options = ["-netdev", "hubport,id=%s,hubid=%d" % (net, hub)]
    for other in range(2, machines + 1):
        link = "link%d-%d" % (network, other)
        options += ["-netdev", stream(link, other, True),
                    "-netdev", "hubport,id=hub%d-%d,hubid=%d,netdev=%s" % (network, other, hub, link)]
    return options


class World:
    def __init__(self, folder, machines=2, rails=2, memory=512, joined=False, disk=False):
        self.folder, self.rails, self.joined = folder, rails, joined
        self.machines = [Machine("abcdefgh"[i], i + 1, folder,
                                 [plug(folder, r, i + 1, machines, joined) for r in range(rails + 1)], memory, disk)
                         for i in range(machines)]

    def __getattr__(self, name):
        """world.a, world.b, …"""
        for machine in self.__dict__.get("machines", ()):
            if machine.name == name:
                return machine
        raise AttributeError(name)

    def start(self):
        """The first machine listens on the wires that the others plug into."""
        first, others = self.machines[0], self.machines[1:]
        first.start()
        end = time.monotonic() + 60 * TIME_LIMIT
        wires = [os.path.join(self.folder, "wire.%d.%d" % (r, m.number)) for r in range(self.rails + 1) for m in others]
        while not all(os.path.exists(w) for w in wires):
            if time.monotonic() > end:
                raise Dead("the wires did not come up: " + open(first.path("qemu"), encoding="utf-8").read())
            time.sleep(0.02)
        for machine in others:
            machine.start()
        for machine in self.machines:
            self.boot(machine)
            self.routes(machine)
        self.check_rails()

    def routes(self, machine):
        """Joined rails: each NIC answers for its own address alone, and reaches every other rail's addresses by itself."""
        if not self.joined:
            return
        lines = ["echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore", "echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce"]
        lines += ["ip route replace 10.0.%d.0/24 dev rail%d src %s metric %d" % (other + 1, rail, machine.address(rail), 100 + rail)
                  for rail in range(self.rails) for other in range(self.rails) if other != rail]
        machine.run("; ".join(lines))

    @staticmethod
    def boot(machine):
        """Until it has booted with a clock that runs as ours does: the kernel measures the processor's once, at boot, and on a busy
        host believes a result that is wrong by a factor; all its time-outs would be."""
        for _ in range(BOOTS):
            machine.booted()
            pace = machine.pace()
            if abs(pace - 1) < PACE_SLACK:
                return
            print("lab: %s's clock runs %.2f times as fast as it should; it boots again" % (machine.name, pace), flush=True)
            machine.reboot()
        raise Dead("%s boots with a wrong clock each time: the host is too busy" % machine.name)

    def check_rails(self):
        """Every RDMA port active, every address reachable: else nothing that follows means anything."""
        for machine in self.machines:
            for rail in range(self.rails):
                self.wait(lambda m=machine, r=rail: "ACTIVE" in m.run("cat /sys/class/infiniband/rxe%d/ports/1/state" % r,
                                                                      check=False),
                          "%s: rxe%d is not active" % (machine.name, rail))
                for other in self.machines:
                    if other is not machine:
                        self.wait(lambda m=machine, o=other, r=rail: " 0% packet loss" in
                                  m.run("ping -c 1 -W 5 -s 1200 " + o.address(r), check=False),
                                  "%s does not reach %s on rail %d" % (machine.name, other.name, rail))

    @staticmethod
    def wait(condition, text, limit=QUIET_LIMIT, step=0.1):
        end = time.monotonic() + limit * TIME_LIMIT
        while not condition():
            if time.monotonic() > end:
                raise Dead(text)
            time.sleep(step)

    def tidy(self):
        """Back to what booted: no process, no fault, every device there."""
        for machine in self.machines:
            machine.hang(False)
            for rail in range(self.rails):
                machine.carrier(rail, True)
                machine.swallow(rail, False)
            machine.run("killall -q -9 ha ha-agent rping ucmatose udaddy ib_write_bw ib_write_lat ib_read_bw ib_send_bw ib_send_lat ib_atomic_bw "
                        "ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong; rm -rf /tmp/job /dev/shm/hawser-0 /dev/shm/softroce-0; modprobe rdma_rxe; "
                        "for r in %s; do tc qdisc del dev rail$r root; tc qdisc del dev rail$r clsact; ip link set rail$r up; done 2>/dev/null; "
                        "true" % " ".join(map(str, range(self.rails))))
            self.devices(machine)
            self.routes(machine)
        self.check_rails()

    def devices(self, machine):
        """rxe0, rxe1, … in this order, the one in which libibverbs lists them: device 0 reaches the peers' device 0."""
        wanted = ["rxe%d" % r for r in range(self.rails)]
        if re.findall(r"^\d+: (rxe\d+):", machine.run("rdma dev"), re.M) != wanted:
            machine.run("; ".join("rdma link delete %s 2>/dev/null" % d for d in wanted) + "; " +
                        " && ".join("rdma link add %s type rxe netdev rail%s" % (d, d[3:]) for d in wanted))

    def stop(self):
        for machine in self.machines:
            machine.stop()
