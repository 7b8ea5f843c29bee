# SPDX-License-Identifier: BSD-3-Clause
"""The software NIC on a machine's rails, in place of the kernel's: the module holds UDP port 4791, so it has to go."""

ENVIRONMENT = {"HA_NCCL_VERBS": "soft", "SOFTROCE_DEVICES": "rail0,rail1"}
RUN = "SOFTROCE_DEVICES=rail0,rail1 /hawser/softroce-run "


def on(lab, machine):
    machine.run("for r in /sys/class/infiniband/rxe*; do rdma link delete ${r##*/}; done; rmmod rdma_rxe")
    lab.say(machine.name + ": softroce in place of rdma_rxe")


def off(lab, machine):
    machine.run("modprobe rdma_rxe; for r in %s; do rdma link add rxe$r type rxe netdev rail$r; done"
                % " ".join(map(str, range(lab.rails))))
    lab.say(machine.name + ": rdma_rxe again")
