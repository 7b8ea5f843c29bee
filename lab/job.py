# SPDX-License-Identifier: BSD-3-Clause
"""One `ha perf` across the machines: a rank on each, its results, what the plugins said, and how long nothing moved."""
import json
import re
import time

from channel import TIME_LIMIT, Dead

PORT = 29500
FOLDER = "/tmp/job"
DONE_LIMIT = 240  # seconds: bounds a hang, measures nothing
PROGRESS = 0.5  # seconds between two lines of rank 0 that say how far it has come; --progress says otherwise
TRAFFIC = 3600  # seconds; traffic ends when it is told to
PROGRESS_PIECES = 64  # of what rank 0 has printed, the newest: a line of progress is among them
CATCH_UP_LIMIT = 60  # seconds; some milliseconds
CAUGHT_UP, SIGUSR1 = b"caught up", 10  # guest/commands.h


class EventFile:
    """What the plugins of one machine have reported so far. Each line is read once: scenarios ask many times a second."""

    def __init__(self, lab, machine, path):
        self.lab, self.machine, self.path = lab, machine, path
        self.follower = machine.start_command("exec agent follow " + path)
        self.found, self.pieces, self.rest = [], 0, b""
        self.asked, self.caught_up = 1, 0  # how often it was to catch up, and has; it does at its start

    def take(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            if line == CAUGHT_UP:
                self.caught_up += 1
            if not line.startswith(b"{"):
                continue
            e = json.loads(line)
            e["machine"], e["host_ns"] = self.machine.name, self.lab.host_time(self.machine, e["monotonic_ns"])
            self.found.append(e)

    def events(self):
        while self.pieces < len(self.follower.pieces):
            self.take(self.follower.pieces[self.pieces])
            self.pieces += 1
        return self.found

    def catch_up(self):
        """Until all that its plugins have reported by now is here."""
        if self.follower.ended.is_set():
            return
        self.wait_caught_up()
        self.follower.kill(SIGUSR1)
        self.asked += 1
        self.wait_caught_up()

    def wait_caught_up(self):
        end = time.monotonic() + CATCH_UP_LIMIT * TIME_LIMIT
        while self.events() is not None and self.caught_up < self.asked:
            if self.follower.ended.is_set():
                return
            if time.monotonic() > end:
                raise Dead("%s: what the plugins report is not passed on" % self.machine.name)
            time.sleep(0.001)

    def collect(self):
        """The file itself is the last word, whatever has become of who followed it. The text."""
        said = self.machine.run("cat " + self.path, check=False)
        self.follower.kill(9)
        self.follower.ended.wait(CATCH_UP_LIMIT * TIME_LIMIT)  # what it has printed comes before its end
        self.follower.pieces, self.found, self.pieces, self.rest = [], [], 0, b""
        self.take(said.encode())
        return said


class Job:
    """`settings` are environment variables of every rank, `of[machine name]` those of one. `machines` may name one twice. `dev` is
    the device of every rank; None: each has the one of its own number."""

    number = 0

    def __init__(self, lab, operation, options, machines, traffic=False, settings=None, of=None, plugin=None, dev=0):
        Job.number += 1
        self.lab, self.machines, self.traffic = lab, machines, traffic
        self.folder = "%s/%d" % (FOLDER, Job.number)
        self.protection = int((settings or {}).get("HA_NCCL_ENABLE_BACKUP", 1)) and lab.rails > 1
        self.ranks, self.event_files, self.collected = [], [], False
        for machine in set(machines):
            machine.run("rm -rf %s; mkdir -p %s; touch %s/events" % (FOLDER, self.folder, self.folder))
            self.event_files.append(EventFile(lab, machine, self.folder + "/events"))
        for rank, machine in enumerate(machines):
            env = {"HA_NCCL_VERBS": "system", "HA_NCCL_EVENTS": self.folder + "/events", "NCCL_SOCKET_IFNAME": "mgmt",
                   "NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "%s/log.%d" % (self.folder, rank),
                   **(settings or {}), **(of or {}).get(machine.name, {})}
            self.ranks.append(machine.start_command(
                "exec /hawser/ha perf %s --rank %d --ranks %d --rendezvous %s:%d -T %d %s %s %s"
                % (operation, rank, len(machines), machines[0].address(-1), PORT + Job.number % 1000, 100 * TIME_LIMIT,
                   "" if dev is None else "--dev %s" % dev, self.own_options(rank, plugin), " ".join(options)), **env))

    def own_options(self, rank, plugin):
        own = ["--plugin", plugin or "/hawser/libnccl-net-ha.so"]
        if self.traffic:
            own += ["--duration", "%ds" % TRAFFIC, "--timeline", self.folder + "/timeline", "--timeline-step", "10ms"]
            own += ["--progress", "%dms" % (PROGRESS * 1000)]
        if rank == 0:
            own.append("--json=%s/report" % self.folder)
        return " ".join(own)

    # ---- what the plugins say ----

    def events(self, machine=None, event=None, **fields):
        """Events so far, of one machine or all, each with `machine` and `host_ns`, its time on this machine's clock."""
        found = [e for file in self.event_files if machine is None or file.machine is machine for e in file.events()
                 if (event is None or e["event"] == event) and all(e.get(k) == v for k, v in fields.items())]
        return sorted(found, key=lambda e: e["host_ns"])

    def wait_event(self, event, count=1, machine=None, limit=120, **fields):
        """Until so many of them have been reported."""
        end = time.monotonic() + limit * TIME_LIMIT
        while True:
            found = self.events(machine, event, **fields)
            if len(found) >= count:
                return found
            if time.monotonic() > end or all(rank.ended.is_set() for rank in self.ranks):
                raise Dead("%d of %d events '%s'%s; the last words: %s" % (
                    len(found), count, event, fields or "", self.last_lines()))
            time.sleep(0.05)

    def wait_protected(self, limit=120, after=None):
        """Until each connection end that exists (said since `after`, a host time) has a standby."""
        end = time.monotonic() + limit * TIME_LIMIT
        self.catch_up()
        while not self.protected(after):
            if time.monotonic() > end or all(rank.ended.is_set() for rank in self.ranks):
                raise Dead("not every connection is protected: %s; the last words: %s" % (
                    {k: v for k, v in self.states().items() if v != "protected"}, self.last_lines()))
            time.sleep(0.05)

    def wait_calm(self, limit=240):
        """Until every connection end has been protected for as long as a kernel may keep a change of carrier to itself (1 s)."""
        end = time.monotonic() + limit * TIME_LIMIT
        while True:
            self.wait_protected()
            said = len(self.events(event="not_protected"))
            time.sleep(1.2)
            if len(self.events(event="not_protected")) == said:
                return
            self.lab.say("not at rest yet: %s" % [(e["machine"], e["event"], e["cause"]) for e in self.events()][-4:])
            if time.monotonic() > end:
                raise Dead("the connections do not come to rest: %s" % self.events()[-6:])

    def wait_measuring(self, limit=120):
        """Until rank 0's progress line counts measured iterations."""
        self.lab.wait(lambda: "bytes, iteration " in self.ranks[0].output or self.ranks[0].ended.is_set(),
                      "nothing is being measured: " + self.last_lines(), limit)

    def progress(self):
        """Iterations that rank 0 has counted so far, as its last line of progress says."""
        newest = b"".join(self.ranks[0].pieces[-PROGRESS_PIECES:])
        return max(map(int, re.findall(rb"bytes, iteration (\d+)", newest)), default=0)

    def wait_flowing(self, limit=60):
        """Until iterations that began after this have been counted."""
        for _ in range(2):
            before = self.progress()
            self.lab.wait(lambda seen=before: self.progress() > seen or self.ranks[0].ended.is_set(),
                          "the job stands still: " + self.last_lines(), limit, step=0.005)

    def states(self):
        """The last word of each connection end about its protection."""
        last = {}
        for e in self.events():
            if e["event"] in ("connected", "protected", "not_protected"):
                last[(e["machine"], e["pid"], e.get("connection"))] = e["event"]
        return last

    def protected(self, after=None):
        """As many ends as a ring of these ranks has, all protected; with `after`: and something was said since."""
        states = self.states()
        if after is not None and not any(e["event"] == "protected" and e["host_ns"] > after for e in self.events()):
            return False
        return len(states) >= self.lab.ends and all(v == "protected" for v in states.values())

    def catch_up(self):
        """Until all that the plugins have reported by now is known here."""
        for file in self.event_files:
            file.catch_up()

    def primary(self, machine):
        """The rail that carries the data, as this machine's last word about protection says."""
        self.catch_up()
        said = [e["text"] for e in self.events(machine, "protected")]
        return int(re.match(r"(?:rxe|soft)(\d+)", said[-1])[1]) if said else 0

    def last(self, event):
        """The host time of the last such event."""
        return self.events(event=event)[-1]["host_ns"]

    def wait_moved(self, after, limit=120):
        """Until both ends of some connection have failed over since that host time."""
        self.lab.wait(lambda: sum(e["host_ns"] > after for e in self.events(event="failed_over")) >= self.lab.ends
                      or all(rank.ended.is_set() for rank in self.ranks), "nobody has failed over", limit)

    def last_lines(self):
        return " | ".join(rank.output.strip()[-300:] for rank in self.ranks)

    # ---- the end ----

    def stop(self):
        """Tells traffic to end, once: rank 0 dies of a second SIGINT."""
        if self.traffic:
            self.ranks[0].kill(2)
        self.traffic = False

    def end(self, limit=DONE_LIMIT):
        """Ends traffic; waits for all ranks; takes report, timeline and logs home. True when all ended well."""
        self.stop()
        try:
            self.status = [rank.wait(limit) for rank in self.ranks]
        finally:
            self.collect()
        return not any(self.status)

    def kill(self, signal=9):
        for rank in self.ranks:
            rank.kill(signal)

    def collect(self):
        self.collected = True
        self.report = self.timeline = None
        for file in self.event_files:
            self.lab.keep("events.%s" % file.machine.name, file.collect())
            self.lab.keep("log.%s" % file.machine.name, file.machine.run("cat %s/log.* 2>/dev/null" % self.folder, check=False))
        for rank, command in enumerate(self.ranks):
            self.lab.keep("rank.%d" % rank, command.output)
        self.lab.keep("story", self.story())
        first = self.machines[0]
        for what in ("report", "timeline"):
            text = first.run("cat %s/%s 2>/dev/null" % (self.folder, what), check=False)
            if text.startswith("{"):
                setattr(self, what, json.loads(text))
                if what == "timeline":
                    self.mark()
                self.lab.keep(what, json.dumps(getattr(self, what)))

    def mark(self):
        """Notes in the timeline when what was done to the machines, s from its zero."""
        zero = self.lab.host_time(self.machines[0], self.timeline["zero_monotonic_ns"])
        self.timeline["faults"] = [[(at - zero) / 1e9, text] for at, text in self.lab.faults if at > zero]

    def story(self):
        """What all plugins said, in the order of this machine's clock, seconds from the scenario's start."""
        lines = []
        for e in self.events():
            rail = "rail %d epoch %d" % (e["rail"], e["epoch"]) if "rail" in e else e.get("device", "")
            lines.append("%9.4f  %s %-34s %-16s %-13s %-12s %s" % (
                self.lab.since_start(e["host_ns"]), e["machine"], e.get("connection", ""), rail, e["event"],
                e["cause"] if e["cause"] != "none" else "", e.get("text", "")))
        return "\n".join(lines) + "\n"

    def disorder(self):
        """Ends of incarnations that were reported in another order than suspected, fenced, failed over (experiment D). Channels of one
        pair of ranks have the same name, so that it is counted: no end is reported more often than the step before it."""
        counted, wrong = {}, []
        for e in sorted(self.events(), key=lambda e: (e["machine"], e["pid"], e["number"])):
            if e["event"] not in ("suspected", "fenced", "failed_over"):
                continue
            rail = (e["machine"], e["pid"], e["connection"], e["rail"])
            steps = counted.setdefault(rail + (e["epoch"],), {"suspected": 0, "fenced": 0})
            if e["event"] == "failed_over":
                if not any(k[:4] == rail and v["fenced"] for k, v in counted.items()):
                    wrong.append(rail + ("failed over before it was fenced",))
                continue
            steps[e["event"]] += 1
            if steps["fenced"] > steps["suspected"] or steps["suspected"] > self.same_name(e):
                wrong.append(rail + (e["epoch"], e["event"]))
        return wrong

    def same_name(self, event):
        """How many connections of this process have the name of this one."""
        return len([e for e in self.events(event="connected") if all(e[k] == event[k] for k in ("machine", "pid", "connection"))])

    @property
    def wrong(self):
        """Elements that were not what they should be, in everything that was verified."""
        if self.timeline:
            return self.timeline["wrong"]
        return sum(r.get("wrong", 0) for r in (self.report or {}).get("results", []))

    def pause(self, fault_ns, window_ns=0, since_ns=0, also=None):
        """Of a fault at that host time: the longest time between two completed requests of a rank that touches it or what
        followed within the window; and the longest between `since_ns`, when all was well again, and the fault.
        None: the fault was outside of the measurement."""
        zero = self.lab.host_time(self.machines[0], self.timeline["zero_monotonic_ns"])
        begin = fault_ns - zero
        if begin < 0 or begin > self.timeline["ranks"][0]["end_ns"]:
            return None
        around = before = 0
        for rank in self.timeline["ranks"]:
            for at, length in rank["gaps"]:
                if at + length <= begin:
                    before = max(before, length if at >= since_ns - zero else 0)
                elif at <= begin + window_ns:
                    around = max(around, length)
        return {"pause_ms": around / 1e6, "before_ms": before / 1e6, "still_ms": self.lab.stood_still(fault_ns, fault_ns + window_ns),
                **self.parts(fault_ns, window_ns), **(also or {})}

    def parts(self, fault_ns, window_ns):
        """When, after the fault, the first end suspected, the last had fenced, the last had failed over; what the longest
        registering took, and how many requests were posted again; ms."""
        found = {}
        for e in self.events():
            if fault_ns <= e["host_ns"] <= fault_ns + window_ns:
                ms = (e["host_ns"] - fault_ns) / 1e6
                if e["event"] == "suspected":
                    found.setdefault("detected_ms", ms)
                elif e["event"] in ("fenced", "failed_over"):
                    found[e["event"] + "_ms"] = ms
                if e["event"] == "failed_over":
                    found["registering_ms"] = max(found.get("registering_ms", 0), e["registration_ns"] / 1e6)
                    found["replayed"] = found.get("replayed", 0) + e["requests"]
        return found
