# SPDX-License-Identifier: BSD-3-Clause
"""The software NIC on a machine's rails, in place of the kernel's: the module holds UDP port 4791, so it has to go."""

import time

ENVIRONMENT = {"HA_NCCL_VERBS": "soft", "SOFTROCE_DEVICES": "rail0,rail1"}
RUN = "SOFTROCE_DEVICES=rail0,rail1 /hawser/softroce-run "


def on(lab, machine):
    machine.run("for r in /sys/class/infiniband/rxe*; do rdma link delete ${r##*/}; done; rmmod rdma_rxe")
    lab.say(machine.name + ": softroce in place of rdma_rxe")


def off(lab, machine):
    machine.run("modprobe rdma_rxe; for r in %s; do rdma link add rxe$r type rxe netdev rail$r; done"
                % " ".join(map(str, range(lab.rails))))
    lab.say(machine.name + ": rdma_rxe again")


def command(lab, program, machine, timeout):
    kernel = machine is lab.a
    if program.startswith("ibv_"):
        program = program.replace("-g 1", "-g 1" if kernel else "-g 0") + (" -m 4096" if "ud_" not in program else "")
    else:
        program += " -u %d" % timeout
    return "%s %s -d %s" % ("exec" if kernel else "exec env " + RUN, program, "rxe0" if kernel else "soft0")


def both(lab, program, server, client, limit=60, timeout=20):
    """A program of perftest or libibverbs between rdma_rxe on a and softroce on b: both ends must end well. `timeout`: perftest's
    queue pairs wait 4 us << timeout for an answer. Once more, twice at most, when a machine stood still: the pingpongs' time-outs cannot be lengthened."""
    for _ in range(3):
        begin = time.monotonic_ns()
        well, words = once(lab, program, server, client, limit, timeout)
        if well or not lab.stood_still(begin, time.monotonic_ns()):
            break
        lab.say("again, the machines stood still: %s, %s" % (program, words[:200]))
    lab.must(well, "%s, %s serves %s: %s" % (program, server.name, client.name, words))


def once(lab, program, server, client, limit, timeout):
    s = server.start_command(command(lab, program, server, timeout))
    lab.wait(lambda: s.ended.is_set() or server.run("cat /proc/net/tcp /proc/net/tcp6 | grep -c ':4853 .* 0A '; true").strip() != "0",
             "%s does not listen at port 18515: %s" % (program, s.output[-300:]))
    c = client.start_command(command(lab, program, client, timeout) + " " + server.address(-1))
    try:
        status = [c.wait(limit), s.wait(limit)]
    except Exception as hung:
        c.kill(9)
        s.kill(9)
        status = str(hung)
    well = status == [0, 0]
    figures = [w for w in c.output.splitlines() if w.strip()[:1].isdigit()]
    return well, str(figures[-1:]) if well else "%s; client: %s; server: %s" % (status, c.output[-400:], s.output[-400:])
