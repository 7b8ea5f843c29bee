# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that stop and ranks that die.

    a  rail0 ======== rail0  b      SIGSTOP for 3 s, SIGCONT; then SIGKILL, at b
       rail1 -------- rail1
       mgmt  -------- mgmt

A stopped rank delays the job and costs nothing (its NIC is the kernel's and goes on acknowledging): no path is suspected.
The death of a rank ends the other with an error that says so, soon; nothing is left.
"""
import time

SET = "long"


def run(lab):
    moment = lab.waits()
    job = lab.traffic("allreduce", "64K")
    job.ranks[1].kill(19)
    time.sleep(3)
    job.ranks[1].kill(18)
    time.sleep(2)
    alarms = lab.false_alarms(job, moment)
    lab.must(not alarms, "a stopped rank's paths are not suspected: %s" % [(e["machine"], e["cause"]) for e in alarms][:4])
    lab.survived(job)
    job = lab.traffic("allreduce", "64K")
    begin = time.monotonic()
    job.ranks[1].kill(9)
    status = job.ranks[0].wait(100)
    lab.measure(death_noticed_s=round(time.monotonic() - begin, 2))
    job.collect()
    lab.must(status != 0, "the rank whose peer has died ends with an error (%d)" % status)
    lab.must("peer" in job.last_lines() or "rank 1" in job.last_lines(), "and says why: " + job.last_lines()[-200:])
