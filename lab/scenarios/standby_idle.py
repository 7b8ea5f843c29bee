# SPDX-License-Identifier: BSD-3-Clause
"""The standby dies and returns while it is idle, loudly and silently; the data stays where it is.

    a  rail0 ======== rail0  b
       rail1 --X----- rail1         down at a; black hole at b; each time healed
       mgmt  -------- mgmt

Both ends say that they are not protected (the silent death by heartbeat), `ha status` too; then that they are again. The
rail that carries the data is never suspected.
"""
import json

SET = "standard"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    for machine, what, off, on in ((lab.a, "port", False, True), (lab.b, "blackhole", True, False)):
        primary = job.primary(lab.a)
        at = lab.hurt(machine, what, 1 - primary, off)
        lab.wait(lambda since=at: sum(e["host_ns"] > since for e in job.events(event="not_protected")) >= lab.ends,
                 "the loss of the standby is not noticed")
        said = [e for e in job.events(event="not_protected") if e["host_ns"] > at]
        lab.sample("noticed_ms", (said[-1]["host_ns"] - at) / 1e6)
        status = json.loads(lab.a.run("/hawser/ha status --json"))
        flags = [c["protected"] for p in status["processes"] for c in p["connections"]]
        lab.must(flags and not any(flags), "`ha status` says so (%s)" % flags)
        back = lab.hurt(machine, what, 1 - primary, on)
        job.wait_protected(after=back)
        if not lab.stood_still(at - 1e9, back):
            lab.must(not [e for e in job.events(event="suspected") if e["host_ns"] > at and e["rail"] == primary],
                     "the rail that carries the data is not suspected")
    lab.survived(job)
