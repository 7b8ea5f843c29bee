# SPDX-License-Identifier: BSD-3-Clause
"""Loss, delay and reordering below the hardware's window: reliable connections heal by themselves.

    a  rail0 ==(netem)== rail0  b   loss 1, 3, 10 %; delay 1, 10, 50 ms; delay with reordering; at both ends
       rail1 ----------- rail1
       mgmt  ----------- mgmt

The job goes on where it is, nothing is wrong, and no path is suspected while the machines run.
"""
import time

SET = "long"
SECONDS = 6
KINDS = ("loss 1%", "loss 3%", "loss 10%", "delay 1ms", "delay 10ms", "delay 50ms", "delay 5ms reorder 25% 50%")


def run(lab):
    moment = lab.waits()
    job = lab.traffic("sendrecv", "16K")
    for how in KINDS:
        for machine in lab.machines:
            lab.hurt(machine, "netem", job.primary(lab.a), how)
        time.sleep(SECONDS)
        for machine in lab.machines:
            for rail in range(lab.rails):
                machine.netem(rail, None)
        alarms = lab.false_alarms(job, moment)
        lab.sample("alarms", [how, len(alarms)])
    lab.survived(job)
    alarms = lab.false_alarms(job, moment)
    lab.must(not alarms, "no path is suspected: %s" % [(e["machine"], e["cause"], e.get("text")) for e in alarms][:4])
