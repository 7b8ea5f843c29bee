# SPDX-License-Identifier: BSD-3-Clause
"""What other scenarios rely on: a NIC by which nothing leaves for as long as was asked, and events that are known when they have been reported.

    a  rail0 ==(netem)=> rail0  b   silent until told otherwise; then for 5 to 80 ms by the guest's own clock
       rail1 ----------- rail1
       mgmt  ----------- mgmt       a file that grows, as the plugins' events do

A command takes 0.1 s to start in a machine, so that a shell makes no such flap; and what is followed once a second is the past.
"""
from job import EventFile

SET = "standard"
LENGTHS = (5, 20, 80)
LINES = 10


def run(lab):
    silences(lab)
    flaps(lab)
    follows(lab)


def reaches(lab, rail):
    return " 0% packet loss" in lab.a.run("ping -c 1 -W 2 " + lab.b.address(rail), check=False)


def silences(lab):
    lab.a.silence(0, True)
    lab.must(not reaches(lab, 0), "nothing leaves by a silent rail")
    lab.must(reaches(lab, 1), "the other rail carries on")
    lab.a.silence(0, False)
    lab.wait(lambda: reaches(lab, 0), "the rail is silent for good")


def flaps(lab):
    for ms in LENGTHS:
        begin, end = lab.a.flap(0, ms)
        lasted = (end - begin) / 1e6
        lab.sample("flaps", [ms, lasted])
        lab.must(lasted >= ms, "a flap of %d ms lasts as long at least (%.1f)" % (ms, lasted))
        lab.must("loss" not in lab.a.run("tc qdisc show dev rail0 root"), "nothing is lost after it")
        lab.wait(lambda: reaches(lab, 0), "the rail is silent after a flap")


def follows(lab):
    path = "/tmp/told"
    lab.a.run("rm -f %s; touch %s" % (path, path))
    file = EventFile(lab, lab.a, path)
    for i in range(LINES):  # a line may be seen before all of it is there
        lab.a.run("printf '{\"event\": \"line\", ' >>" + path)
        file.catch_up()
        lab.must(len(file.found) == i, "half of line %d is none" % i)
        lab.a.run("echo '\"monotonic_ns\": %d}' >>%s" % (i, path))
        file.catch_up()
        lab.must([e["monotonic_ns"] for e in file.found] == list(range(i + 1)), "line %d is known as soon as it is asked for" % i)
    file.collect()
    lab.must(len(file.events()) == LINES, "each line is known once")
