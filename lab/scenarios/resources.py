# SPDX-License-Identifier: BSD-3-Clause
"""How many connections a device carries, and what the formula of maxComms says (experiment C).

    a  rail0 ======== rail0  b      sendrecv: channels x messages in flight x channels that share a connection in groups
       rail1 -------- rail1
       mgmt  -------- mgmt

What the plugin advertises is what the formula gives for rdma_rxe's limits. As many connections as advertised work with 32 messages in
flight; so does every cell of the grid; no completion queue overruns, no kernel complains. Then more and more processes with 64
connections each way, until something gives: that must end with a line that says what, and leave nothing behind.
"""
SET = "long"
MAX_QP, MAX_CQE = 1048560, 32767  # rdma_rxe's


def one(lab, channels, steps, group, ranks=1, **settings):
    """Its row of the table, with so many ranks on each machine. A channel's slice is 4 KiB."""
    job = lab.perf("sendrecv", "-b", "32K", "-e", "32K", "-n", "3", "--channels", channels, "--steps", steps, "--group", group,
                   "--buffsize", "%dK" % (4 * steps), ends=0, machines=lab.machines * ranks, **settings)
    well = job.end()
    overrun = job.events(event="suspected", cause="queue_error")
    lab.must(not overrun, "no queue overruns (%s)" % overrun[:2])
    lab.must(job.wrong == 0, "no element is wrong")
    result = job.report["results"][0] if well else {}
    row = {"channels": channels, "steps": steps, "group": group, "ranks": ranks, "connections": 2 * ranks * channels // group, "well": well,
           "time_us": result.get("time_us"), "max_comms": job.report["plugin"]["max_comms"] if job.report else None,
           "words": "" if well else job.last_lines()[-200:], **settings}
    lab.say(str(row))
    return row


def run(lab):
    for channels, wr in ((16, 64), (1, 64), (2, 32), (1, 256)):
        promised = max(1, min(MAX_QP // (2 * channels), MAX_CQE // ((wr * 8 + wr) * 2 * channels), 256))
        # maxComms communicators of so many channels: a connection each to send and to receive
        row = one(lab, promised * channels, 32, 1, HA_NCCL_EXPECTED_CHANNELS=channels, HA_NCCL_WR_PER_CONN=wr)
        lab.sample("advertised", {**row, "formula": promised})
        lab.must(row["well"] and row["max_comms"] == promised, "%d communicators are promised and work: %s" % (promised, row))
    for channels in (1, 8, 32):
        for steps in (1, 8, 32):
            for group in (1, 8):
                if group <= channels:
                    row = one(lab, channels, steps, group)
                    lab.sample("grid", row)
                    lab.must(row["well"], "%d channels of %d messages, groups of %d" % (channels, steps, group))
    for ranks in (1, 2, 4, 8):
        row = one(lab, 64, 8, 1, ranks)
        lab.sample("beyond", row)
        lab.flat("%d ranks of 64 channels on a machine" % ranks)
        if not row["well"]:
            lab.must(row["words"], "what gives says so: %s" % row["words"])
            break
