# SPDX-License-Identifier: BSD-3-Clause
"""The RDMA device goes away under the traffic (`rdma link delete`), and a new one comes.

    a  rxe0 (deleted) ==== rxe0  b
       rxe1 -------------- rxe1
       mgmt -------------- mgmt

The kernel keeps the device until its last user has closed it; the job goes on or over to the other rail, nothing is wrong.
"""
import time

SET = "standard"


def run(lab):
    job = lab.traffic("allreduce", "64K")
    gone = lab.a.start_command("rdma link delete rxe%d" % job.primary(lab.a))
    time.sleep(5)
    lab.say("the deletion %s" % ("has returned" if gone.ended.is_set() else "waits for its users"))
    lab.measure(deletion_waits=not gone.ended.is_set())
    lab.survived(job)
    gone.wait(60)
