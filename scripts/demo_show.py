# SPDX-License-Identifier: BSD-3-Clause
"""What the demos show alike: gnuplot's pictures, the plugins' events as short lines, pauses of a timeline."""
import re
import shutil
import subprocess

NEAR_NS = 10**9  # a pause that begins within this time of the cut is counted as its
DULL = {"protected", "not_protected", "device"}  # before the start; connections and their orderly end are dull always


def have_gnuplot():
    if shutil.which("gnuplot"):
        return True
    print("(no plot: gnuplot is not installed; scripts/install-deps demo)")
    return False


def gnuplot(lines):
    """Its output, without what only a terminal's page would need."""
    done = subprocess.run(["gnuplot"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=False)
    if done.returncode:
        print("no plot: gnuplot says: " + done.stderr.strip().splitlines()[-1])
    return "\n".join(line.rstrip() for line in done.stdout.splitlines() if line.strip("\f "))


def mark_lines(marks):
    """gnuplot's lines for vertical lines with words: [(seconds, word, height from 0 to 1)]."""
    lines = []
    for when, what, height in marks:
        lines += ["set arrow from first %f,graph 0 to first %f,graph 1 nohead dashtype 2" % (when, when),
                  "set label '%s' at first %f,graph %g offset 2,0" % (what, when, height)]
    return lines


def pids_of(report):
    return {rank["pid"]: rank["rank"] for rank in report["ranks"]} if report else {}


def ends_of(event, ranks):
    """"rank 0 -> 1": whose word it is, and about the connection to or from whom."""
    who = "rank %d" % ranks[event["pid"]] if event["pid"] in ranks else "pid %d" % event["pid"]
    peer = re.search(r" (->|<-) .*\[(\d+)\]", event.get("connection", ""))
    if not peer:
        return who
    return "%s %s %s" % (who, peer[1], ranks.get(int(peer[2]), peer[2]))


def event_line(event, ranks, zero):
    rail = "rail %d %s" % (event["rail"], event.get("device", "")) if "rail" in event else event.get("device", "")
    line = "%8.4f  %-11s  %-14s  %-13s  %s" % ((event["monotonic_ns"] - zero) / 1e9, ends_of(event, ranks), rail,
                                             event["event"], event["cause"] if event["cause"] != "none" else "")
    if event["event"] == "failed_over":
        line = "%-66s stalled %.1f ms, posted again: %d requests, %d bytes" % (line, event["stall_ns"] / 1e6,
                                                                           event["requests"], event["bytes"])
    return line.rstrip()


def list_events(events, ranks, zero, most=40):
    """One short line per event: what the plugins of all ranks said, in order. ranks: by process."""
    shown = [e for e in sorted(events, key=lambda e: e["monotonic_ns"]) if
             (e["monotonic_ns"] >= zero or e["event"] not in DULL) and e["event"] not in ("connected", "peer_closed")]
    print("\nWhat the plugins said (HA_NCCL_EVENTS), seconds from the start:")
    for e in shown[:most]:
        print(event_line(e, ranks, zero))
    if not shown:
        print("  nothing")
    if len(shown) > most:
        print("  ... and %d more" % (len(shown) - most))


def pauses(timeline, near_ns=NEAR_NS):
    """The longest pause of any rank around the cut, and the longest before it, nanoseconds."""
    cut = timeline["marks"][0]["begin_ns"]
    around = before = 0
    for rank in timeline["ranks"]:
        for at, length in rank["gaps"]:
            if at + length < cut:
                before = max(before, length)
            elif at < cut + near_ns:
                around = max(around, length)
    return around, before
