# SPDX-License-Identifier: BSD-3-Clause
"""The software NIC on a machine's rails, in place of the kernel's: the module holds UDP port 4791, so it has to go."""

import time

DEVICES = "rail0,rail1"
ENVIRONMENT = {"HA_NCCL_VERBS": "soft", "SOFTROCE_DEVICES": DEVICES}
RUN = "SOFTROCE_DEVICES=%s /hawser/softroce-run "


def on(lab, machine):
    machine.run("for r in /sys/class/infiniband/rxe*; do rdma link delete ${r##*/}; done; rmmod rdma_rxe")
    lab.say(machine.name + ": softroce in place of rdma_rxe")


def off(lab, machine):
    machine.run("modprobe rdma_rxe; for r in %s; do rdma link add rxe$r type rxe netdev rail$r; done"
                % " ".join(map(str, range(lab.rails))))
    lab.say(machine.name + ": rdma_rxe again")


def perf_across(lab, machine, other):
    """softroce at `machine`: all-reduce of every size, then a port goes down at either end."""
    on(lab, machine)
    of = {machine.name: ENVIRONMENT}
    lab.survived(lab.perf("allreduce", "-b", "8", "-e", "1M", "-f", "16", "-n", "3", "-w", "1", of=of))
    job = lab.traffic("sendrecv", "64K", of=of)
    for end in (machine, other):
        lab.around(job, "soft_" + machine.name, end, "port", job.primary(end), False, True)
    lab.survived(job, failovers=8)
    off(lab, machine)


def command(program, machine, timeout, kernel, devices):
    of_kernel = machine in kernel
    if program.startswith("ibv_"):
        program = program.replace("-g 1", "-g 1" if of_kernel else "-g 0") + (" -m 4096" if "ud_" not in program else "")
    else:
        program += " -u %d" % timeout
    return "%s %s -d %s" % ("exec" if of_kernel else "exec env " + RUN % devices, program, "rxe0" if of_kernel else "soft0")


def both(lab, program, server, client, limit=60, timeout=20, kernel=None, devices=DEVICES):
    """A program of perftest or libibverbs between rdma_rxe on the machines of `kernel` (a) and softroce on the others' `devices`: both
    ends must end well. `timeout`: perftest's queue pairs wait 4 us << timeout for an answer. Once more, twice at most, when a machine
    stood still: the pingpongs' time-outs cannot be lengthened. The line with the client's figures; None where it did not end well."""
    kernel = (lab.a,) if kernel is None else kernel
    for _ in range(3):
        begin = time.monotonic_ns()
        well, words = once(lab, program, server, client, limit, timeout, kernel, devices)
        if well or not lab.stood_still(begin, time.monotonic_ns()):
            break
        lab.say("again, the machines stood still: %s, %s" % (program, words[:200]))
    return words if lab.must(well, "%s, %s serves %s: %s" % (program, server.name, client.name, words)) else None


def once(lab, program, server, client, limit, timeout, kernel, devices):
    s = server.start_command(command(program, server, timeout, kernel, devices))
    lab.wait(lambda: s.ended.is_set() or server.run("cat /proc/net/tcp /proc/net/tcp6 | grep -c ':4853 .* 0A '; true").strip() != "0",
             "%s does not listen at port 18515: %s" % (program, s.output[-300:]))
    c = client.start_command(command(program, client, timeout, kernel, devices) + " " + server.address(-1))
    try:
        status = [c.wait(limit), s.wait(limit)]
    except Exception as hung:
        c.kill(9)
        s.kill(9)
        status = str(hung)
    well = status == [0, 0]
    figures = [w for w in c.output.splitlines() if w.strip()[:1].isdigit()]
    return well, "".join(figures[-1:]) if well else "%s; client: %s; server: %s" % (status, c.output[-400:], s.output[-400:])
