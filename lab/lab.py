# SPDX-License-Identifier: BSD-3-Clause
"""What a scenario works with: machines, jobs, and what must hold."""
import json
import os
import time

from job import Job

NOTHING_CAME_BACK = ("timeout", "heartbeat", "work_failed", "silence")
BUSY = 0.3  # share of the time for which a machine waits for a processor of the host; above it a silence says nothing about a path


class Lab:
    """`a`, `b`, `c` are the machines. A scenario calls `perf`, hurts something, and says with `must` what holds."""

    def __init__(self, world, folder, name, doc=None):
        self.world, self.folder, self.name = world, folder, name
        self.title = (doc or name).strip().splitlines()[0]
        self.machines, self.rails = world.machines, world.rails
        self.failures, self.measures, self.kept, self.offsets = [], {}, {}, {}
        self.ends, self.jobs, self.faults = 0, [], []
        self.begin = time.monotonic()
        self.log = open(os.path.join(folder, "log"), "w", encoding="utf-8")
        for machine in self.machines:
            self.clock_look(machine)

    def __getattr__(self, name):
        return getattr(self.__dict__["world"], name)

    # ---- clocks ----

    def clock_look(self, machine):
        guest, here, _ = machine.channel.clock()
        self.offsets[machine.name] = here - guest

    def host_time(self, machine, guest_ns):
        return guest_ns + self.offsets[machine.name]

    def since_start(self, host_ns):
        return host_ns / 1e9 - self.begin

    def stood_still(self, begin_ns, end_ns):
        """For how long a machine as a whole did not run in between, at most, ms: the host was busy with something else."""
        return max([(min(e, end_ns) - max(b, begin_ns)) / 1e6 for m in self.machines for b, e in m.channel.stills
                    if b < end_ns and e > begin_ns], default=0)

    def waits(self):
        """A moment, for share_waited()."""
        return time.monotonic_ns(), {m.name: m.waits() for m in self.machines}

    def share_waited(self, moment):
        """The share of the time since, 0 to 1, in which the host had other work than the thread of a machine that wanted a processor,
        for the thread that waited longest."""
        then, before = moment
        now, after = self.waits()
        return max(ns - before[name].get(task, 0) for name, tasks in after.items() for task, ns in tasks.items()) / (now - then)

    # ---- jobs ----

    def perf(self, operation, *options, machines=None, traffic=False, of=None, plugin=None, ends=None, dev=0, **settings):
        """`ha perf` with one rank per machine (or as `machines` says), by default with failover over all rails."""
        machines = machines or self.machines
        self.ends = ends if ends is not None else 2 * len(machines)
        self.say("ha perf %s %s %s" % (operation, " ".join(map(str, options)), settings or ""))
        job = Job(self, operation, [str(o) for o in options], machines, traffic, settings, of, plugin, dev)
        self.jobs.append(job)
        return job

    def traffic(self, operation, size, *options, **more):
        """`ha perf` of one size without end, every result verified; returned when every connection is protected and
        some of it has been measured."""
        job = self.perf(operation, "-b", size, "-e", size, *options, traffic=True, **more)
        if job.protection:
            job.wait_protected()
        job.wait_measuring()
        return job

    def wind_up(self):
        """After a scenario that did not get to its end: what its job said is what one wants to read."""
        for job in self.jobs:
            if not job.collected:
                job.kill()
                job.collect()

    def survived(self, job, failovers=None):
        """Waits for the end: all ranks well, nothing wrong, no connection lost; and so many rails failed over at least."""
        well = job.end()
        self.must(well, "every rank ends well (%s: %s)" % (job.status, job.last_lines()[-400:]))
        self.must(job.wrong == 0, "no element is wrong (%s are)" % job.wrong)
        self.must(not job.events(event="lost"), "no connection is lost")
        moved = len(job.events(event="failed_over"))
        disorder = job.disorder()
        self.must(not disorder, "each incarnation ends in the order suspected, fenced, failed over (%s)" % disorder[:3])
        if failovers is not None:
            self.must(moved >= failovers, "at least %d ends fail over (%d did)" % (failovers, moved))
        iterations = job.timeline["iterations"] if job.timeline else None
        self.must(job.timeline is None or iterations > 0, "something was measured")
        self.measure(iterations=iterations, failed_over=moved)
        self.say("ended: %s, %s iterations, wrong %s, %d ends failed over" % (job.status, iterations, job.wrong, moved))
        if job.timeline:
            self.pauses(job)
        return well

    # ---- faults, logged ----

    def hurt(self, machine, what, rail, *how):
        """machine.WHAT(rail, …); the host's time of it."""
        at = self.host_time(machine, getattr(machine, what)(rail, *how))
        text = "%s: %s rail%d %s" % (machine.name, what, rail, " ".join(map(str, how)))
        self.faults.append((at, text))
        self.say(text)
        return at

    def switch(self, what, rail, *how):
        """machine.WHAT(rail, …) for every machine, at once: what they are plugged into dies or comes back. The host's time of it."""
        at = time.monotonic_ns()
        for machine in self.machines:
            getattr(machine, what)(rail, *how)
        text = "the switch of rail%d: %s %s, within %.1f ms" % (rail, what, " ".join(map(str, how)), (time.monotonic_ns() - at) / 1e6)
        self.faults.append((at, text))
        self.say(text)
        return at

    def unless_busy(self, events, moment):
        """These events, which a pause of milliseconds may cause; none, when a machine was busy since that moment, which is of waits()."""
        waited = self.share_waited(moment)
        self.measure(waited=round(waited, 2))
        if not events or waited <= BUSY:
            return events
        self.say("machine too busy: a machine's thread waited for a processor %d %% of the time; not judged: %s" % (100 * waited, events))
        return []

    def false_alarms(self, job, moment):
        """Paths suspected because nothing came back, while every machine ran; for a silence, also while none was busy."""
        found = [e for e in job.events(event="suspected") if e["cause"] in NOTHING_CAME_BACK]
        blamed = [e for e in found if not self.stood_still(e["host_ns"] - 2e9, e["host_ns"])]
        self.say("%d paths suspected, %d of them while every machine ran" % (len(found), len(blamed)))
        silent = [e for e in blamed if e["cause"] == "silence"]
        return [e for e in blamed if e["cause"] != "silence"] + self.unless_busy(silent, moment)

    def around(self, job, name, machine, what, rail, off, on, hold=0.3, rest=0):
        """One fault, until it is over: hurt, wait until every end has moved, mend, wait until all is protected again. `rest` s of
        quiet operation come first, in which the longest pause is measured, too."""
        others = [r for r in range(self.rails) if r != rail]
        before, since = self.sent_again(others), time.monotonic_ns()
        time.sleep(rest)
        at = self.hurt(machine, what, rail, off)
        job.wait_moved(at)
        time.sleep(hold)
        back = self.hurt(machine, what, rail, on)
        job.wait_protected(after=back)
        self.sample("%s_at_%s" % (name, machine.name), (at, job.last("failed_over") - at, since,
                                                        {k: n - before[k] for k, n in self.sent_again(others).items()}))

    def sent_again(self, rails):
        """How often queue pairs have begun to send again on these rails (a time-out, a packet missing) or had to wait because no
        receive was posted, on all machines; softroce's are not counted."""
        counted = {}
        for what, counter in (("sent_again", "completer_retry_err"), ("not_ready", "rcvd_rnr_err")):
            names = " ".join("/sys/class/infiniband/rxe%d/ports/1/hw_counters/%s" % (r, counter) for r in rails)
            counted[what] = sum(int(n) for m in self.machines for n in m.run("cat %s 2>/dev/null; true" % names).split())
        return counted

    def pauses(self, job):
        """Turns samples of moments and windows (`NAME_at_MACHINE`) into samples of pauses."""
        for name in [n for n in self.measures if "_at_" in n]:
            self.measures[name] = [job.pause(*at) if isinstance(at, tuple) else at for at in self.measures[name]]
            self.say("%s: %s" % (name, self.measures[name]))

    # ---- verdicts ----

    def say(self, text):
        line = "%8.2f  %s" % (time.monotonic() - self.begin, text)
        self.log.write(line + "\n")
        self.log.flush()

    def must(self, condition, text):
        self.say(("holds: " if condition else "FAILS: ") + text)
        if not condition:
            self.failures.append(text)
        return condition

    def measure(self, **values):
        self.measures.update(values)

    def sample(self, name, value):
        self.measures.setdefault(name, []).append(value)

    def keep(self, name, text):
        """A file beside the result."""
        n = self.kept[name] = self.kept.get(name, 0) + 1
        with open(os.path.join(self.folder, name if n == 1 else "%s.%d" % (name, n)), "w", encoding="utf-8") as f:
            f.write(text)

    def flat(self, after):
        """No RDMA object of a process is left on any machine, and no kernel complains."""
        for machine in self.machines:
            left = machine.run("rdma resource show qp | grep -v 'type GSI' | grep -c . ; rdma resource show mr | grep -c . ; true")
            self.must(left.split() == ["0", "0"], "%s: no queue pair and no registration is left after %s (%s)"
                      % (machine.name, after, left.split()))

    def result(self, error=None):
        for machine in self.machines:
            complaints = machine.complaints()
            self.must(not complaints, "%s's kernel does not complain (%s)" % (machine.name, complaints[:3]))
        if error:
            self.failures.append(error)
            self.say("FAILS: " + error)
        outcome = self.save(self.failures)
        self.log.close()
        return outcome

    def save_so_far(self):
        """What a run that is ended from outside leaves behind."""
        self.save(self.failures + ["it was ended before its end"])

    def save(self, failures):
        outcome = {"scenario": self.name, "title": self.title, "holds": not failures, "failures": failures,
                   "seconds": round(time.monotonic() - self.begin, 1), "measures": self.measures}
        path = os.path.join(self.folder, "result.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(outcome, f, indent=1)
        os.replace(path + ".new", path)
        return outcome
