# SPDX-License-Identifier: BSD-3-Clause
"""How many connections a device carries, and what the formula of maxComms says (experiment C).

    a  rail0 ======== rail0  b      sendrecv with 1, 4, 16, 64 channels, up to 128 connections on rxe0, whose completion queues
       rail1 -------- rail1         have 32767 entries; each with the budget's variables as they are
       mgmt  -------- mgmt

The formula promises 1 there (16 channels of 64 x 8 requests are assumed); all of these must work, without a completion queue that
overruns and without a kernel that complains.
"""
SET = "long"


def run(lab):
    for channels in (1, 4, 16, 64):
        for steps in (8, 32):
            job = lab.perf("sendrecv", "-b", "64K", "-e", "64K", "-n", "3", "--channels", channels, "--steps", steps,
                           "--buffsize", "%dK" % (4 * steps), ends=0)
            lab.survived(job)
            lab.must(not job.events(event="suspected", cause="queue_error"), "no queue overruns")
            result = job.report["results"][0] if job.report else {}
            lab.sample("grid", {"channels": channels, "steps": steps, "time_us": result.get("time_us"),
                                "max_comms": job.report["plugin"]["max_comms"] if job.report else None})
