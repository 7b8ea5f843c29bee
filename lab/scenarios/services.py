# SPDX-License-Identifier: BSD-3-Clause
"""hawser's packages in a Debian with systemd: each daemon's unit is started, killed, started at boot, stopped, removed.

    a     Debian 12 from a disk, systemd as its first process; the packages of `make deb`
    sw0 ==== host0      veth: the switches' port, the backend's card

Every unit becomes active, what it serves answers from within its sandbox, and systemd starts it again after SIGKILL. The exporter reads the pages
of another user's job, whose failover is in the journal with its fields. ha-switch makes sums for two ranks over the backend, every element
verified; ha-switch-xdp, which serves no rank of its own machine, has its program on the port and is up for the controller. After a boot all
that was enabled is there again; after `dpkg --purge` no process, unit or socket is.
"""
import json

from channel import Dead

SET = "long"
MACHINES = 1
RAILS = 0
MEMORY = 1024
DISK = True
LIMIT = 200  # seconds, times channel.TIME_LIMIT: only a hang gets there
LINKS = "ip link add sw0 type veth peer name host0 && ip addr add 10.9.0.1/24 dev host0 && ip link set sw0 up && ip link set host0 up"
SETTINGS = {
    "/etc/ha-controller.conf": "switch leaf address 10.9.0.254 slots 4096 serves 10.9.0.0/24 registers\nregister any\n"
                               "lease 1 3600 86400\nlate 1\nsilence 1\nlength 256\n",
    "/etc/default/ha-switch": 'HA_SWITCH_OPTIONS="--address=10.9.0.254 --name=leaf --controller=127.0.0.1:50051 --slots=4096 --memory=64 '
                              '--idle-us=100 --port=net_af_packet0,iface=sw0"\n',
    "/etc/default/ha-switch-xdp": 'HA_SWITCH_XDP_OPTIONS="--address=10.9.0.254 --name=leaf --controller=127.0.0.1:50051 --slots=4096 '
                                  '--port=sw0"\n',
    "/etc/default/ha-backend": "NETCCL_BIND_ADDR=10.9.0.1\nNETCCL_CONTROLLER_ADDR=127.0.0.1:50051\nOPTIONS=--workers=1 --idle-us=200\n",
}
# A command of the guest's that ends well when the daemon answers.
FETCH = "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' http://127.0.0.1:%d/metrics"
ANSWERS = {
    "hawser-exporter": FETCH % 9845 + " | grep hawser_exporter_build_info",
    "ha-agent": FETCH % 9840 + " && runuser -u job ha agent show && ha agent dump",
    "ha-controller": FETCH % 9841 + " && ha ina groups --controller unix:/run/ha-controller/socket && ha ina groups --controller 127.0.0.1:50051",
    "ha-switch": FETCH % 9842 + " && ha ina groups --controller 127.0.0.1:50051 | grep 'leaf.* up '",
    "ha-switch-xdp": FETCH % 9844 + " && ip link show sw0 | grep xdpgeneric && ha ina groups --controller 127.0.0.1:50051 | grep 'leaf.* up '",
    "ha-backend": FETCH % 9843 + " && test -S /run/hawser/ina.sock",
}
SUM = "ha ina-perf all_reduce --ranks 2 -b 4K -e 64K -n 3 --timeout 600"
JOB = "HA_NCCL_VERBS=soft SLURM_JOB_ID=4711 exec ha perf sendrecv --ranks 2 -b 64K -e 64K --timeout 1800 --duration 20s --at 5s 'ha cut soft0' --at 12s 'ha heal soft0'"


def shown(machine, unit):
    """What systemd says of a unit."""
    lines = machine.run("systemctl show %s -p ActiveState,SubState,MainPID,NRestarts,Result" % unit).splitlines()
    return dict(line.split("=", 1) for line in lines)


def last_lines(machine, unit):
    return machine.run("systemctl status --no-pager -n 20 %s; true" % unit)[-1500:]


def answers(lab, unit, what):
    """Active and serving, within a limit that only a hang reaches."""
    def serving():
        return shown(lab.a, unit)["SubState"] == "running" and not lab.a.start_command(ANSWERS[unit]).wait(LIMIT)
    try:
        lab.wait(serving, "%s does not answer %s" % (unit, what), LIMIT)
    except Dead:
        lab.say(last_lines(lab.a, unit))
        raise
    lab.must(True, "%s is active and answers %s" % (unit, what))


def started(lab, *units):
    lab.a.run("systemctl --no-reload enable " + " ".join(units))
    for unit in units:
        lab.a.run("systemctl start " + unit, LIMIT)
        answers(lab, unit, "when it was started")


def killed(lab, unit):
    """systemd starts it again, as another process, and it answers again."""
    before = shown(lab.a, unit)
    lab.a.run("systemctl kill -s KILL " + unit)
    lab.wait(lambda: int(shown(lab.a, unit)["NRestarts"]) > int(before["NRestarts"]), unit + " is not started again", LIMIT)
    answers(lab, unit, "after SIGKILL")
    lab.must(shown(lab.a, unit)["MainPID"] != before["MainPID"], unit + " is another process")


def stopped(lab, unit):
    lab.a.run("systemctl stop " + unit, LIMIT)
    state = shown(lab.a, unit)
    lab.must((state["ActiveState"], state["Result"], state["MainPID"]) == ("inactive", "success", "0"), "%s stops in order (%s)" % (unit, state))


def summed(lab, switch):
    text = lab.a.run(SUM + " 2>&1", LIMIT)
    lab.must("wrong: 0 elements on all ranks; groups: 1" in text, "two ranks sum over %s: %s" % (switch, text[-300:]))


def watched(lab):
    """The exporter counts the failover of another user's job and writes it to the journal."""
    job = lab.a.start_command("exec runuser -u job -- sh -c " + json.dumps(JOB))
    lab.must(job.wait(LIMIT) == 0, "the job ends well: %s" % job.output[-300:])
    query = "journalctl -o json --no-pager SYSLOG_IDENTIFIER=hawser HAWSER_EVENT=failed_over; true"
    lab.wait(lambda: lab.a.run(query).strip(), "no failover is in the journal", LIMIT)
    entries = [json.loads(line) for line in lab.a.run(query).splitlines()]
    lab.keep("journal", json.dumps(entries, indent=1))
    lab.keep("metrics", lab.a.run(FETCH % 9845))
    entry = entries[0]
    lab.must(entry["_SYSTEMD_UNIT"] == "hawser-exporter.service" and " failed_over: " in entry["MESSAGE"] and entry["PRIORITY"] == "4"
             and "soft" in entry["HAWSER_DEVICE"] and entry["HAWSER_JOB"] == "4711" and entry["HAWSER_CONNECTION"] and int(entry["HAWSER_STALL_NS"]) > 0,
             "the failover is in the journal with its fields (%s)" % entry)
    lab.must("failovers" in lab.a.run(FETCH % 9845 + " | grep failovers_total | grep -v ' 0$'; true"), "the exporter has counted it")


def rebooted(lab, units):
    lab.a.run("sync")
    lab.a.reboot()
    lab.boot(lab.a)
    settled(lab)
    lab.a.run(LINKS)
    for unit in units:
        answers(lab, unit, "after a boot")


def settled(lab):
    state = lab.a.run("systemctl is-system-running --wait", LIMIT, check=False).strip()
    lab.must(state == "running", "systemd is running (%s) %s" % (state, lab.a.run("systemctl --failed --no-legend --plain")))


def purged(lab):
    """While the daemons run: that ends them. /run/mpib stays until the next boot, because running jobs have files of it mapped."""
    lab.a.run("dpkg --purge $(dpkg-query -W -f '${Package} ${Source}\\n' | awk '$2 == \"hawser\" { print $1 }')", 2 * LIMIT)
    left = lab.a.run("pgrep -l 'ha-|hawser'; systemctl list-units --all --no-legend --plain 'ha-*' 'hawser-*'; "
                     "ls -d /run/hawser /run/ha-* /usr/bin/ha /usr/bin/ha-* /usr/bin/hawser* 2>/dev/null; ss -Hltn 'sport >= 9840 and sport <= 9845'; "
                     "find /etc/systemd /var/lib \\( -name 'ha-*' -o -name 'hawser-*' \\) ! -path '/var/lib/dpkg/*'; true")
    lab.must(not left.strip(), "nothing is left after the removal: %s" % left)


def run(lab):
    settled(lab)
    lab.a.run("rmmod rdma_rxe; useradd -m job; dpkg -i /packages/*.deb", 2 * LIMIT)
    for path, text in SETTINGS.items():
        lab.a.run("printf %%s \"$TEXT\" >%s" % path, TEXT=text)
    lab.must(not lab.a.run("pgrep -l 'ha-|hawser'; true"), "installing starts nothing")
    lab.a.run(LINKS)
    units = ["hawser-exporter", "ha-agent", "ha-controller", "ha-switch", "ha-backend"]
    started(lab, units[0])
    watched(lab)
    started(lab, *units[1:])
    summed(lab, "ha-switch")
    for unit in units:
        killed(lab, unit)
    summed(lab, "what was started again")
    stopped(lab, "ha-switch")
    started(lab, "ha-switch-xdp")
    killed(lab, "ha-switch-xdp")
    lab.a.run("systemctl disable ha-switch")
    units[3] = "ha-switch-xdp"
    rebooted(lab, units)
    for unit in units:
        stopped(lab, unit)
        lab.a.run("systemctl start " + unit, LIMIT)
    purged(lab)
