# SPDX-License-Identifier: BSD-3-Clause
"""One incarnation of a group in the network: its operations from the first to the failure, if there is one.

Every rank numbers the operations of its group in the order of the program, so the numbers mean the same on all. Rank r posts number m only
after its number m - IN_FLIGHT has ended well. So whoever has the result of m knows that all ranks have those up to m - IN_FLIGHT, and
may forget them; until then it keeps what others may lack (operation.py), without a message between the ranks.

`changed` (a condition of the group) protects all of it.
"""

import errno
import os

from . import capi, codec, memory

IN_FLIGHT = 2
ENDING = 10.0  # seconds in which the library ends what it was asked to
SENTENCES = {
    -errno.ENOTCONN: "the host's backend has gone",
    -errno.ETIMEDOUT: "a peer, the switch or the controller was silent for its limit",
    -errno.ECANCELED: "the group was ended by another rank, the controller or the switch",
}


class Incarnation:
    def __init__(self, client, handle, changed, wake, name):
        self.client, self.handle, self.changed, self.wake, self.name = client, handle, changed, wake, name
        self.reserved = 0  # numbers given out
        self.posted = 0  # numbers that the library has been given; void ones pass
        self.ended = 0  # leading ones that ended well here
        self.confirmed = 0  # leading ones that ended well on all ranks
        self.operations = {}  # from `confirmed` on
        self.failure = None  # (negative errno, sentence), or the alarm's
        self.frozen = False  # recovery has begun: nothing more is posted
        self.limit = None  # after the agreement: numbers below it belong to this incarnation on all ranks
        self.crowded = False  # the library had no room; the agent tries again
        self.left = False

    def reserve(self, kind):
        operation = kind(self.reserved)
        operation.wake = self.wake
        if self.frozen:
            operation.over.set()  # recovery makes it
        self.operations[self.reserved] = operation
        self.reserved += 1
        return operation

    def submit(self, operation):
        """It is described, or void. From the caller's thread: what comes before in its stream belongs to the tensor."""
        operation.place = memory.where(operation.source if operation.source is not None else operation.result)
        with self.changed:
            operation.ready.set()
            self.pump()
            self.changed.notify_all()

    def pump(self):
        """Posts what may go."""
        was, self.crowded = self.crowded, False
        while not self.frozen and self.failure is None and self.posted < self.reserved and self.posted - self.ended < IN_FLIGHT:
            operation = self.operations[self.posted]
            if not operation.ready.is_set() or operation.spoiled:
                return
            if operation.void:
                operation.over.set()
            else:
                r, operation.handle = self.client.post(self.handle, operation.request(), operation)
                if r == -errno.EAGAIN:
                    self.crowded = True
                    if not was:
                        self.wake.put(None)
                    return
                if r:
                    self.fail(r, operation.handle)
                    operation.handle = None
                    return
            self.posted += 1
            if operation.void:
                self._take_in()

    def settle(self):
        """Takes in what the library has ended, in order; after stop() there is no more of it."""
        with self.changed:
            if not self.frozen and self._take_in():
                self.pump()
                self.changed.notify_all()

    def _take_in(self):
        before = self.ended
        while self.ended < self.posted:
            operation = self.operations[self.ended]
            if not operation.over.is_set():
                break
            if operation.handle is not None:
                if operation.rc:
                    self.fail(operation.rc, None)
                    break
                self._collect(operation)
                self._confirm(operation.number - IN_FLIGHT + 1)
            self.ended += 1
            operation.finish()
        return self.ended != before

    def _collect(self, operation):
        met, operation.done = self.client.collect(operation.handle)
        operation.handle = None
        if met & capi.SATURATED and operation.type == capi.INT32:
            codec.saturated()

    def _confirm(self, count):
        for number in range(self.confirmed, count):
            self.operations.pop(number).release()
        self.confirmed = max(self.confirmed, count)

    def fail(self, rc, sentence):
        """Once; the agent takes over."""
        if self.failure is None:
            self.failure = (rc, sentence or SENTENCES.get(rc) or os.strerror(-rc))
            self.wake.put(None)

    def stop(self):
        """Nothing is posted or in flight afterwards, and what ended is known segment by segment."""
        with self.changed:
            self.frozen, left, self.left = True, self.left, True
            if left:
                return
            flying = [o for n, o in sorted(self.operations.items()) if self.ended <= n < self.posted and o.handle is not None]
        self.client.leave(self.handle)
        for operation in flying:
            if not operation.over.wait(ENDING):
                raise RuntimeError("libhawser-ina.so did not end its operations when the group was left")
        with self.changed:
            self._take_in()
            for operation in flying:
                if operation.handle is not None:
                    self._collect(operation)
            for operation in self.operations.values():
                operation.over.set()

    def abandon(self, error):
        """What is open ends with the error."""
        with self.changed:
            self.frozen, self.limit = True, self.reserved
            for operation in self.operations.values():
                operation.over.set()
                operation.finish(error)
            self.changed.notify_all()

    def idle(self):
        """No result here that another rank may still need."""
        return self.confirmed == self.reserved


class Pause:
    """How many operations go another way before the network is tried again; counted alike on all ranks."""

    MOST = 4096

    def __init__(self, first):
        self.first = self.length = max(1, first)
        self.count, self.tried = 0, False

    def passed(self):
        """Counts one; true when it is time."""
        self.count += 1
        return self.count > self.length

    def refused(self):
        """There was no incarnation to be had: twice as long from the second time on."""
        self.count, self.length = 0, min(self.length * 2, self.MOST) if self.tried else self.length
        self.tried = True

    def failed_after(self, operations):
        """An incarnation ended: twice as long if it was a short one, else as at first."""
        self.count = 0
        self.length = self.first if operations > 4 * self.length else min(self.length * 2, self.MOST)
