# SPDX-License-Identifier: BSD-3-Clause
"""A ring of three machines; a port goes down at one, then a cable is pulled at another.

    a ── rail0 switch ── b          a's QEMU is the switch of each network
    a ── rail1 switch ── c
    a ── mgmt  switch

All-reduce goes on through both; only the connections of the hurt machine move.
"""
SET = "standard"
MACHINES = 3


def run(lab):
    job = lab.traffic("allreduce", "48K")
    for machine, what in ((lab.b, "port"), (lab.c, "cable")):
        rail = job.primary(machine)
        at = lab.hurt(machine, what, rail, False)
        lab.wait(lambda m=machine, since=at: sum(e["host_ns"] > since for e in job.events(m, "failed_over")) >= 2,
                 "the connections of the hurt machine do not move")
        lab.sample("ring_at_" + machine.name, (at, job.last("failed_over") - at))
        back = lab.hurt(machine, what, rail, True)
        job.wait_protected(after=back)
    lab.survived(job, failovers=8)
