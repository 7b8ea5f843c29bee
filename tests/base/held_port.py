#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A port for a test: `held_port.py` prints one and holds it until its output's reader has gone; free_port() is for tests in Python.

    exec 3< <(exec tests/base/held_port.py) && read -r port <&3    # and exec 3<&- when it is needed no more
"""

import select
import socket
import sys

_held = []


def free_port():
    """A port that is this test's until its process ends: it stays bound, so nobody else is given it. Who listens there reuses
    the address, as torch and `ha nccl` do.

    Bound to every address, as they listen: of a port that is free on one address, another may have somebody's connection, or
    one that was closed less than a minute ago."""
    s = socket.socket(socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if s.family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("", 0))
    _held.append(s)
    return s.getsockname()[1]


def main():
    print(free_port(), flush=True)
    reader = select.poll()
    reader.register(sys.stdout, 0)  # POLLERR is always reported
    reader.poll()


if __name__ == "__main__":
    main()
