# SPDX-License-Identifier: BSD-3-Clause
"""Commands for a machine over its virtio serial port, and what they print; the host's end of guest/agent.c."""
import os
import queue
import struct
import threading
import time

RUN, KILL, CLOCK, OUTPUT, END, PULSE, HELLO = 1, 2, 3, 4, 5, 6, 0x4C41424C
TIME_LIMIT = float(os.environ.get("LAB_TIME_LIMITS", "3"))  # every limit times this, on a host that is busy with something else
STILL_NS = 200e6  # the agent reports every 50 ms that it runs
HEADER = struct.Struct("<III")
HELLO_FRAME = HEADER.pack(HELLO, 0, 0)


class Dead(Exception):
    """The machine has gone, or did not answer within the limit."""


class Command:
    """One command in the guest. `output` grows; `status` is None until it has ended."""

    def __init__(self, channel, number, text):
        self.channel, self.number, self.text = channel, number, text
        self.pieces, self.status, self.ended = [], None, threading.Event()

    @property
    def output(self):
        return b"".join(self.pieces).decode("utf-8", "replace")

    def kill(self, signal):
        self.channel.send(KILL, self.number, str(signal).encode())

    def wait(self, limit):
        """The exit status. Dead after `limit` seconds: a limit for hangs, not a measure of anything."""
        if not self.ended.wait(limit * TIME_LIMIT):
            raise Dead("%s: '%s' has not ended after %g s; so far: %s"
                       % (self.channel.name, self.text[:80], limit, self.output[-500:]))
        if self.status is None:
            raise Dead("%s: '%s' was lost with the machine" % (self.channel.name, self.text[:80]))
        return self.status


class Channel:
    """Frames both ways; one thread reads. After a reboot everything up to the next HELLO is thrown away."""

    def __init__(self, name, plug):
        self.name = name
        self.socket = plug
        self.lock = threading.Lock()
        self.commands, self.clocks, self.number = {}, queue.Queue(), 0
        self.pulse, self.stills = None, []  # when it was last seen to run; (begin, end) of standing still, CLOCK_MONOTONIC ns
        self.hello = threading.Event()
        self.synchronised = False
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, kind, number, payload=b""):
        with self.lock:
            self.socket.sendall(HEADER.pack(kind, number, len(payload)) + payload)

    def start(self, text):
        with self.lock:
            self.number += 1
            command = self.commands[self.number] = Command(self, self.number, text)
        self.send(RUN, command.number, text.encode())
        return command

    def clock(self):
        """(the guest's CLOCK_MONOTONIC, this machine's, how far that may be off), ns; the best of five tries."""
        best = None
        for _ in range(5):
            begin = time.monotonic_ns()
            self.send(CLOCK, 0)
            try:
                guest = self.clocks.get(timeout=60 * TIME_LIMIT)
            except queue.Empty:
                raise Dead("%s does not report the time" % self.name) from None
            end = time.monotonic_ns()
            if best is None or (end - begin) // 2 < best[2]:
                best = (guest, (begin + end) // 2, (end - begin) // 2)
        return best

    def forget(self):
        """Before a reboot: commands are lost, the next frame is a HELLO."""
        self.synchronised = False
        self.hello.clear()
        self.lose()

    def lose(self):
        for command in list(self.commands.values()):
            command.ended.set()
        self.commands.clear()

    def read(self):
        data = b""
        while True:
            try:
                piece = self.socket.recv(1 << 18)
            except OSError:
                piece = b""
            if not piece:
                self.lose()
                return
            data = self.frames(data + piece)

    def frames(self, data):
        """Takes whole frames off the front; returns the rest."""
        at = 0
        while len(data) - at >= HEADER.size:
            if not self.synchronised:
                begin = data.find(HELLO_FRAME, at)
                if begin < 0:
                    return data[max(at, len(data) - HEADER.size + 1):]
                at = begin
            kind, number, length = HEADER.unpack_from(data, at)
            if len(data) - at < HEADER.size + length:
                break
            self.take(kind, number, data[at + HEADER.size:at + HEADER.size + length])
            at += HEADER.size + length
        return data[at:]

    def note_pulse(self, now):
        if self.pulse and now - self.pulse > STILL_NS:
            self.stills.append((self.pulse, now))
        self.pulse = now

    def take(self, kind, number, payload):
        command = self.commands.get(number)
        if kind == HELLO:
            self.synchronised = True
            self.hello.set()
        elif kind == CLOCK:
            self.clocks.put(int(payload))
        elif kind == PULSE:
            self.note_pulse(time.monotonic_ns())
        elif kind == OUTPUT and command:
            command.pieces.append(payload)
        elif kind == END and command:
            command.status = int(payload)
            del self.commands[number]
            command.ended.set()
