# SPDX-License-Identifier: BSD-3-Clause
"""The driver's own path migration (APM) is on for one port, by a recorded sysfs: the plugin warns.

    a  rxe0 (apm_enable 1) ==== rxe0  b     a's plugin reads a copy of its sysfs with that file in it
       rxe1 ------------------- rxe1

One warning that names the device, none about the other; `ha topo -v` says so; none with HA_NCCL_ENABLE_BACKUP=0. The job runs, protected.
"""
SET = "standard"
TREE = "/tmp/recorded"
RECORD = """rm -rf %(tree)s; mkdir -p %(tree)s; cd /
for r in 0 1; do
	find sys/class/infiniband/rxe$r/ -type d | sed 's|^|%(tree)s/|' | xargs mkdir -p
	find sys/class/infiniband/rxe$r/ -type f ! -path '*/[0-9][0-9]*' | while read f; do cat $f >%(tree)s/$f; done 2>/dev/null
done
echo 1 >%(tree)s/sys/class/infiniband/rxe0/ports/1/apm_enable
find %(tree)s -type f | wc -l""" % {"tree": TREE}


def warnings(lab, job):
    lines = lab.a.run("cat %s/log.0" % job.folder).splitlines()
    return [line for line in lines if "(APM) is enabled" in line]


def run(lab):
    lab.say("recorded %s files" % lab.a.run(RECORD).strip())
    for backup in (1, 0):
        job = lab.perf("sendrecv", "-b", "64K", "-e", "64K", "-n", "10", of={"a": {"HA_NCCL_SYSFS_ROOT": TREE}},
                       ends=0 if not backup else None, HA_NCCL_ENABLE_BACKUP=backup)
        lab.survived(job)
        said = warnings(lab, job)
        lab.must(len(said) == backup and all("rxe0" in s and "port 1" in s for s in said), "warned %d times, of rxe0: %s" % (backup, said))
        if backup:
            lab.must(len(job.events(event="protected")) >= 4, "both ends of both connections are protected all the same")
    text = lab.a.run("/hawser/ha topo -v 2>/dev/null", HA_NCCL_VERBS="system", HA_NCCL_SYSFS_ROOT=TREE)
    lab.must(text.count("APM ENABLED") == 1, "`ha topo -v` says so of one device: %s" % [x for x in text.splitlines() if "APM" in x])
