#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A test that is killed leaves nothing behind: neither what runs in its network namespaces nor these, nor its folder of files. As root."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from spaces import Space, folder


def victim():
    """A test with all of it, which says where and hangs."""
    space, top = Space(), folder("hawser-killed-")
    p = space.popen("sleep", "1000")
    with open(os.path.join(top, "file"), "w") as f:
        f.write("x")
    while os.readlink("/proc/%d/ns/net" % p.pid) == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    print(p.pid, os.readlink("/proc/%d/ns/net" % p.pid), top, flush=True)
    time.sleep(1000)


def spaces_of_all():
    """The network namespaces that some process is in."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add(os.readlink("/proc/%s/ns/net" % pid))
        except OSError:
            pass
    return found


def main():
    with subprocess.Popen([sys.executable, os.path.abspath(__file__), "victim"], stdout=subprocess.PIPE, text=True) as p:
        pid, space, top = p.stdout.readline().split()
        assert space in spaces_of_all() and os.path.exists(top + "/file")
        p.send_signal(signal.SIGKILL)
        p.wait()
    end = time.monotonic() + 60
    while os.path.exists(top) or space in spaces_of_all():
        assert time.monotonic() < end, "left behind: %s %s %s" % (pid, space, top)
        time.sleep(0.05)
    print("process %s, %s, %s: all gone" % (pid, space, top))


victim() if sys.argv[1:] == ["victim"] else main()
