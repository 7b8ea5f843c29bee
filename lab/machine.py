# SPDX-License-Identifier: BSD-3-Clause
"""One QEMU machine: its process, its hypervisor's monitor (QMP), commands in the guest."""
import json
import os
import re
import shlex
import socket
import subprocess
import time

from channel import TIME_LIMIT, Channel, Dead

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-lab")
BOOT_LIMIT = 300  # seconds; 6 when the host is idle
MONITOR_LIMIT = 60
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")  # whatever ends lab/run, no machine survives it
# On a busy host a machine has no processor for a minute, and verifies an XDP program for another: no lockup, whatever its kernel thinks.
DISK_WORDS = " lab.disk nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# What a kernel says when something is broken in it, ours or the driver's.
KERNEL_COMPLAINTS = re.compile(r"BUG:|Oops|WARNING: CPU|general protection|Call Trace|refcount_t|Kernel panic|"
                               r"hung_task|blocked for more than|page allocation failure|Out of memory")


def accelerator():
    """Software emulation; LAB_ACCEL=kvm for those who trust their host's. LAB_ICOUNT=1: a guest's clock counts its instructions, one
    a nanosecond, so that what it measures does not depend on what else the host does."""
    if os.environ.get("LAB_ACCEL") == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    if os.environ.get("LAB_ICOUNT"):
        return ["-accel", "tcg", "-icount", "shift=0,sleep=on", "-cpu", "qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt"]
    return ["-accel", "tcg", "-cpu", "qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt"]


class Monitor:
    """QMP: one command, one answer; events between them are of no interest here."""

    def __init__(self, plug):
        self.socket = plug
        self.socket.settimeout(MONITOR_LIMIT * TIME_LIMIT)
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline() or '{"error": {"desc": "the machine has gone"}}')
            if "error" in answer:
                raise Dead("QMP %s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]


class Machine:
    """`name` is a, b, c …; `number` is 1, 2, 3 …, also the last byte of its addresses. `netdevs[rail]` are QEMU's options of
    what each of its NICs is plugged into, the management network first."""

    def __init__(self, name, number, folder, netdevs, memory=512, disk=False):
        self.name, self.number, self.folder = name, number, folder
        self.memory, self.disk = memory, disk
        self.rails = len(netdevs) - 1
        self.netdevs = netdevs
        self.process = None

    def path(self, what):
        return os.path.join(self.folder, "%s.%s" % (self.name, what))

    def arguments(self):
        args = [*DIES_WITH_US, "qemu-system-x86_64", "-name", "lab-" + self.name, "-nodefaults", "-no-user-config", "-M", "q35", *accelerator(),
                "-smp", os.environ.get("LAB_CPUS", "1"), "-m", str(self.memory), "-display", "none",
                "-kernel", os.path.join(BUILD, "vmlinux"), "-initrd", os.path.join(BUILD, "initramfs.cpio"),
                "-append", "console=ttyS0 loglevel=6 panic=-1 nokaslr mitigations=off tsc=reliable no_timer_check lab.machine=%d%s"
                % (self.number, DISK_WORDS if self.disk else ""),
                "-serial", "file:" + self.path("console"),
                "-qmp", "unix:%s,server=on,wait=off" % self.path("qmp"),
                "-device", "virtio-serial-pci",
                "-chardev", "socket,id=agent,path=%s,server=on,wait=off" % self.path("agent"),
                "-device", "virtserialport,chardev=agent"]
        if self.disk:  # what is written to it is gone with the machine
            args += ["-drive", "file=%s,format=raw,if=virtio,snapshot=on" % os.path.join(BUILD, "disk.ext4")]
        for rail, options in enumerate(self.netdevs):
            args += options + ["-device", "virtio-net-pci,id=nic%d,netdev=net%d,mac=52:54:00:00:%02x:%02x,speed=10000,"
                               "duplex=full,romfile=" % (rail, rail, self.number, rail)]
            if rail > 0:  # switched on by swallow(): what passes goes to nowhere
                args += ["-chardev", "null,id=nowhere%d" % rail, "-object",
                         "filter-redirector,id=swallow%d,netdev=net%d,queue=all,outdev=nowhere%d,status=off" % (rail, rail, rail)]
            if os.environ.get("LAB_CAPTURE"):
                args += ["-object", "filter-dump,id=dump%d,netdev=net%d,file=%s" % (
                    rail, rail, os.path.join(os.environ["LAB_CAPTURE"], "%s.%d.pcap" % (self.name, rail)))]
        return args

    def start(self):
        with open(self.path("qemu"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.arguments(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.monitor = Monitor(self.plugged("qmp"))
        self.channel = Channel(self.name, self.plugged("agent"))

    def plugged(self, what):
        """Connected to a socket that QEMU makes when it starts: its name is there a moment before it listens."""
        plug = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 60 * TIME_LIMIT
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Dead("%s: QEMU ended: %s" % (self.name, open(self.path("qemu"), encoding="utf-8").read()[-300:]))
            try:
                plug.connect(self.path(what))
                return plug
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.02)
        raise Dead("%s: QEMU made no %s" % (self.name, what))

    def booted(self):
        if not self.channel.hello.wait(BOOT_LIMIT * TIME_LIMIT):
            raise Dead("%s has not booted within %d s; its console: %s" % (self.name, BOOT_LIMIT, self.console()[-500:]))

    def waits(self):
        """How long each of its threads has waited for a processor of the host so far, ns, by thread."""
        tasks = "/proc/%d/task" % self.process.pid
        waits = {}
        for task in os.listdir(tasks):
            try:
                with open("%s/%s/schedstat" % (tasks, task), encoding="ascii") as stat:
                    waits[task] = int(stat.read().split()[1])
            except OSError:
                pass  # it has ended
        return waits

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    # ---- in the guest ----

    def start_command(self, text, **environment):
        """A shell command that runs by itself from now on."""
        words = "".join("export %s=%s; " % (k, shlex.quote(str(v))) for k, v in environment.items())
        return self.channel.start(words + text)

    def run(self, text, limit=120, check=True, **environment):
        """What a shell command prints."""
        command = self.start_command(text, **environment)
        status = command.wait(limit)
        if status and check:
            raise Dead("%s: '%s' ended with %d: %s" % (self.name, text[:120], status, command.output[-500:]))
        return command.output

    def now(self):
        """The guest's CLOCK_MONOTONIC, ns."""
        guest, here, _ = self.channel.clock()
        return guest + time.monotonic_ns() - here

    def pace(self):
        """How fast its clock runs, against ours; over a second, or longer when it answers slowly."""
        begin, here, off = self.channel.clock()
        while True:
            time.sleep(1)
            end, now, off_now = self.channel.clock()
            if off + off_now < 0.02 * (now - here):
                return (end - begin) / (now - here)

    def console(self):
        try:
            with open(self.path("console"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def complaints(self):
        """Lines of the kernel about itself."""
        return [line for line in self.console().splitlines() if KERNEL_COMPLAINTS.search(line)]

    def sent(self):
        """The guest's clock, ns, and what has left by each rail since it booted, bytes on the wire."""
        names = " ".join("/sys/class/net/rail%d/statistics/tx_bytes" % rail for rail in range(self.rails))
        return [int(n) for n in self.run("agent clock; cat " + names).split()][-self.rails - 1:]

    # ---- faults: each is done when the call returns, and returns the guest's time of it ----

    def address(self, rail):
        return "10.0.%d.%d" % (rail + 1, self.number)

    def cable(self, rail, up):
        """The hypervisor takes the carrier away from one NIC (`set_link`), or gives it back. The other end sees nothing."""
        before = self.now()
        self.carrier(rail, up)
        return before

    def carrier(self, rail, up):
        """What cable() does; the guest is not asked for its time, so that several machines can lose it at once."""
        self.monitor.ask("set_link", name="nic%d" % (rail + 1), up=up)

    def swallow(self, rail, on):
        """The hypervisor takes every packet of one NIC, both ways, from one packet to the next; its port stays up. As carrier(), without
        a command in the guest."""
        self.monitor.ask("qom-set", path="/objects/swallow%d" % (rail + 1), property="status", value="on" if on else "off")

    def timed(self, text):
        """A fault as a command in the guest, with the guest's time just before it."""
        at = int(self.run("agent clock; " + text).split()[0])
        return at

    def port(self, rail, up):
        return self.timed("ip link set rail%d %s" % (rail, "up" if up else "down"))

    def netem(self, rail, how):
        """What leaves by this rail; None: nothing is done to it any more."""
        name = "rail%d" % rail
        return self.timed("tc qdisc replace dev %s root netem %s" % (name, how) if how else
                          "tc qdisc del dev %s root 2>/dev/null; true" % name)

    def silence(self, rail, on):
        """What would leave by this rail vanishes, from one packet to the next. After the first time netem stays, and lets everything through."""
        return int(self.run("exec agent silence rail%d %s" % (rail, "on" if on else "off")))

    def flap(self, rail, ms):
        """Nothing leaves by this rail for so long; the guest's times of its begin and its end."""
        said = self.run("exec agent silence rail%d %d" % (rail, ms * 1e6))
        return [int(at) for at in said.split()]

    def rate(self, rail, mbit):
        """What leaves by this rail waits for its turn; nothing is lost."""
        return self.timed("tc qdisc replace dev rail%d root tbf rate %dkbit burst 32kb limit 16mb" % (rail, mbit * 1000))

    def blackhole(self, rail, on):
        """Whatever comes in by this rail vanishes, by a filter before the protocols see it."""
        name = "rail%d" % rail
        if not on:
            return self.timed("tc qdisc del dev %s clsact 2>/dev/null; true" % name)
        return self.timed("tc qdisc add dev %s clsact && tc filter add dev %s ingress matchall action drop" % (name, name))

    def remove(self, rail):
        return self.timed("rdma link delete rxe%d" % rail)

    def insert(self, rail):
        return self.timed("rdma link add rxe%d type rxe netdev rail%d" % (rail, rail))

    def hang(self, on):
        self.monitor.ask("stop" if on else "cont")

    def reboot(self):
        self.channel.forget()
        self.monitor.ask("system_reset")
