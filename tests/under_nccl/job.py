# SPDX-License-Identifier: BSD-3-Clause
"""A run under NCCL in a folder and with software NICs of its own, looked at and hurt while it runs: what each NIC has sent, what the
plugins said, what NCCL's log says. It goes on until the test ends it, so nothing hangs on how fast the machine is."""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 600  # only a hang reaches it


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def start_as_job():
    """In the child, before its program: served like any other process, and SIGTERM when the test is killed, so that the job does not go
    on without it."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def serve_first():
    """This process, which sleeps nearly all the time, and its commands get a processor at once. The job's ranks poll, four of them on
    two processors, and beside them `ha status`, 20 ms of work, took up to three seconds."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:  # not root: it takes longer
        pass


class Wrong(Exception):
    """Something does not hold."""


def expect(true, what, *values):
    if not true:
        raise Wrong(what % values if values else what)


def read_events(path):
    """Those in a file that processes append lines to. One that is half written is not there yet: the file is read at once, since
    reading on after half a line gives the other half as a line."""
    try:
        with open(path, encoding="utf-8") as file:
            whole = file.read().rpartition("\n")[0]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in whole.splitlines()]


def shared_memory_of(group):
    """NCCL's files in /dev/shm that the processes of a group have mapped."""
    files = set()
    for path in glob.glob("/proc/[0-9]*"):
        try:
            if os.getpgid(int(path[6:])) == group:
                with open(os.path.join(path, "maps"), encoding="utf-8") as file:
                    files.update(re.findall(r"/dev/shm/nccl-\w+$", file.read(), re.M))
        except OSError:
            pass  # it has ended meanwhile
    return files


class Run:
    """A command with `settings` as environment variables, beside those that give it a folder and NICs of its own; None takes one away.
    A folder that is given stays there."""

    def __init__(self, build, command, settings=None, folder=None):
        self.kept = folder
        self.folder = folder or tempfile.mkdtemp(prefix="under-nccl-")
        self.ha = os.path.join(build, "ha")
        self.env = {**os.environ, **self.own_settings(), **(settings or {})}
        self.env = {name: value for name, value in self.env.items() if value is not None}
        os.makedirs(os.path.join(self.folder, "control"), 0o700)
        serve_first()
        self.output = open(os.path.join(self.folder, "output"), "w", encoding="utf-8")
        self.process = subprocess.Popen(command(self.folder), env=self.env, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=start_as_job)

    def own_settings(self):
        """Loopback subnets that only this process's job has, and all that is written in its folder."""
        number = os.getpid() % 250
        return {"SOFTROCE_DEVICES": ",".join("127.%d.%d.0/24" % (170 + i, number) for i in range(2)),
                "SOFTROCE_CONTROL": os.path.join(self.folder, "control"), "HA_NCCL_VERBS": "soft",
                "HA_NCCL_EVENTS": os.path.join(self.folder, "events"), "HA_NCCL_STATUS_DIR": os.path.join(self.folder, "status"),
                "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,GRAPH,ENV", "NCCL_DEBUG_FILE": os.path.join(self.folder, "log.%p")}

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.process.poll() is None:
            left = shared_memory_of(self.process.pid)
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            for path in left:
                if os.path.exists(path):
                    os.unlink(path)
        if kind:
            warnings = [line for line in self.log().splitlines() if "WARN" in line]
            sys.stderr.write(self.printed()[-3000:] + "\n".join(warnings[:20]) + "\n")
        self.output.close()
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def tool(self, *words):
        """What `ha WORDS` prints."""
        return subprocess.run([self.ha, *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=LIMIT_S).stdout

    def printed(self):
        with open(os.path.join(self.folder, "output"), encoding="utf-8") as file:
            return file.read()

    def log(self):
        text = ""
        for path in glob.glob(os.path.join(self.folder, "log.*")):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        return text

    def events(self, event):
        """How many of them all ranks together have had."""
        return sum(one["event"] == event for one in read_events(os.path.join(self.folder, "events")))

    def sent_by(self, *nics):
        """Bytes that each of these NICs of all ranks has sent, read at one time."""
        total, nic = dict.fromkeys(nics, 0), None
        for line in self.tool("soft").splitlines():
            if not line.startswith(" "):
                nic = line.split("@")[0]
            elif nic in total and line.split()[0] == "sent_bytes":
                total[nic] += int(line.split()[1])
        return [total[nic] for nic in nics]

    def sent(self, nic):
        return self.sent_by(nic)[0]

    def wait(self, what, holds):
        """Until holds(), while the job runs."""
        end = time.monotonic() + LIMIT_S
        while not holds():
            expect(self.process.poll() is None, "the job has ended while it was waited until %s", what)
            expect(time.monotonic() < end, "%d s, and it does not hold that %s", LIMIT_S, what)
            time.sleep(0.05)

    def wait_sent(self, nic, more):
        """Until the NIC has sent so much more."""
        before = self.sent(nic)
        self.wait("%s sends" % nic, lambda: self.sent(nic) >= before + more)

    def status(self):
        """How it ends by itself."""
        try:
            return self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Wrong("it does not end") from None

    def devices_used(self):
        """Numbers of the devices over which NCCL has channels."""
        return {int(number) for number in re.findall(r"via NET/HA/(\d+)", self.log())}


class Job(Run):
    """`ha nccl OPERATION OPTIONS`, until the test ends it. `wrapper`: words before the command."""

    def __init__(self, build, version, operation, *options, ranks=2, settings=None, wrapper=(), folder=None):
        super().__init__(build, lambda folder: [
            *wrapper, os.path.join(build, "ha"), "nccl", operation, "--nccl", version, "--ranks", str(ranks), "--net", "hawser",
            "--duration", "86400s", "--progress", "50ms", "--json=" + os.path.join(folder, "report"), *options], settings, folder)

    def iteration(self):
        """How many measured iterations rank 0 has begun, as it last said: twenty times a second, where the plugin's page with its
        count of messages is a second old."""
        return max(map(int, re.findall(r"^ha nccl: .* iteration (\d+)$", self.printed(), re.M)), default=0)

    def wait_iterations(self, how):
        """Until two more have begun, the first of which is over then."""
        before = self.iteration()
        self.wait("it goes on " + how, lambda: self.iteration() >= before + 2)

    def end(self):
        """As with ^C: the report. Status 0, no wrong element."""
        self.wait_iterations("before it is ended")  # before the measurement ^C has no report yet
        os.killpg(self.process.pid, signal.SIGINT)
        status = self.status()
        expect(status == 0, "ha nccl ends with %d", status)
        with open(os.path.join(self.folder, "report"), encoding="utf-8") as file:
            report = json.load(file)
        expect(report["results"], "the report has no results")
        expect(not any(row["wrong"] for row in report["results"]), "there are wrong elements")
        return report


def main(cases):
    """For the end of a test: TEST BUILD VERSION CASE."""
    if len(sys.argv) != 4 or sys.argv[3] not in cases:
        sys.exit("usage: %s BUILD VERSION CASE, which is one of: %s" % (sys.argv[0], " ".join(cases)))
    if not os.path.exists(os.path.join(sys.argv[1], "softcuda", "nccl-" + sys.argv[2], "libnccl.so.2")):
        print("no NCCL %s here; scripts/install-deps nccl fetches it" % sys.argv[2])
        sys.exit(77)
    try:
        cases[sys.argv[3]](sys.argv[1], sys.argv[2])
    except Wrong as wrong:
        sys.exit("%s under NCCL %s: %s" % (sys.argv[3], sys.argv[2], wrong))
