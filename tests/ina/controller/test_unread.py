#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client over raw HTTP/2 that asks and leaves no room for answers (a flow-control window of 0): its calls end by
themselves, and others can call again. Argument: ha-controller."""
import socket
import struct
import sys
import threading
import time
import urllib.request

from rig import Rig

SETTINGS = "switch leaf address 10.0.0.254 slots 4096 serves 10.0.0.0/24\n"
CALLS = 40
DATA, HEADERS, SETTINGS_FRAME = 0, 1, 4
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def text(value):
    """A string of HPACK, not compressed."""
    assert len(value) < 127
    return bytes([len(value)]) + value.encode()


def request_headers(method):
    """Literals with new names that no table keeps."""
    headers = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "controller", "te": "trailers",
               "content-type": "application/grpc"}
    return b"".join(b"\0" + text(name) + text(value) for name, value in headers.items())


class Unread:
    """Sends `calls` requests on one connection, and reads nothing but bytes."""

    def __init__(self, port, calls):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
                            frame(SETTINGS_FRAME, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)) +
                            frame(SETTINGS_FRAME, ACK, 0))
        for i in range(calls):
            stream = 2 * i + 1
            self.socket.sendall(frame(HEADERS, END_HEADERS, stream, request_headers("/inc.INC/List")) +
                                frame(DATA, END_STREAM, stream, b"\0" + struct.pack(">I", 0)))
        threading.Thread(target=self.drop, daemon=True).start()

    def drop(self):
        while self.socket.recv(65536):
            pass


def metrics(r):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = opener.open("http://127.0.0.1:%d/metrics" % r.metrics_port, timeout=300).read().decode()
    return dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))


def wait_for_calls(r, wanted, seconds):
    deadline = time.monotonic() + seconds
    while True:
        calls = int(metrics(r)["hawser_controller_calls_in_progress"])
        if wanted(calls):
            return
        assert time.monotonic() < deadline, "%d calls are in progress still" % calls
        time.sleep(0.2)


def main():
    with Rig(sys.argv[1], SETTINGS) as r:
        client = Unread(r.port, CALLS)
        wait_for_calls(r, lambda n: n >= CALLS, 60)
        wait_for_calls(r, lambda n: n == 0, 120)
        assert int(metrics(r)["hawser_controller_calls_slow_total"]) == CALLS
        client.socket.shutdown(socket.SHUT_RDWR)
        assert r.stop() == 0


main()
