# SPDX-License-Identifier: BSD-3-Clause
"""A machine hangs for two seconds (the hypervisor stops it), then one is reset.

    a  rail0 ======== rail0  b      b: stop, cont; then reset
       rail1 -------- rail1
       mgmt  -------- mgmt

The hang is survived whatever is suspected meanwhile. The reset ends the other rank with an error, in bounded time; when the
machine is back a new job runs.
"""
import time

SET = "long"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    lab.b.hang(True)
    time.sleep(2)
    lab.b.hang(False)
    time.sleep(3)
    job.wait_protected()
    lab.survived(job)
    job = lab.traffic("allreduce", "64K")
    begin = time.monotonic()
    lab.b.reboot()
    status = job.ranks[0].wait(200)
    lab.measure(reset_noticed_s=round(time.monotonic() - begin, 1))
    lab.must(status != 0, "the rank whose peer's machine was reset ends with an error (%d)" % status)
    lab.b.booted()
    lab.clock_look(lab.b)
    job.collect()
    lab.world.check_rails()
    again = lab.perf("allreduce", "-b", "64K", "-e", "64K", "-n", "5")
    lab.survived(again)
