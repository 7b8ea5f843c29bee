# SPDX-License-Identifier: BSD-3-Clause
"""A port is taken down by its own machine (`ip link set down`), at either end, of the path that carries the data.

    a  rail0 ===X==== rail0  b      down at a, then up; down at b, then up; each time on the rail that carries
       rail1 -------- rail1
       mgmt  -------- mgmt

The job goes on over the other rail each time, the rail that comes back becomes the standby, no byte is wrong.
"""
SET = "core"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    for machine in (lab.a, lab.b):
        lab.around(job, "port_down", machine, "port", job.primary(machine), False, True)
    lab.survived(job, failovers=8)
