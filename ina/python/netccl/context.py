# SPDX-License-Identifier: BSD-3-Clause
"""What netccl knows of a process group: its incarnation in the network, the agent that watches it, and when it is tried again.

All ranks decide alike whether an operation goes through the network: by its number in the program, and by what they agreed on.
"""

import errno
import os
import queue
import threading
import time
import uuid

from . import capi, client, codec, recovery, say
from .incarnation import Incarnation, Pause

RETRY = 32  # operations, NETCCL_RETRY_OPS
LEAVING = 5.0  # seconds that a rank that leaves waits for the others to have their results


class Context:
    def __init__(self, link, store):
        self.link = link
        own = recovery.Alarm.connect(store)
        self.alarm = recovery.Alarm(own if all(link.everyone(own is not None)) else store)
        self.name = None  # of the group, alike on all ranks
        self.incarnations = 0
        self.incarnation = None
        self.dead = None  # why there is never going to be another incarnation
        self.why = None  # why there is none now
        self.quant = codec.mode()
        self.pause = Pause(_retry())
        self.changed = threading.Condition(threading.RLock())
        self.wake = queue.SimpleQueue()
        self.counts = {"network": 0, "fallback": 0, "recovered": 0, "incarnations": 0}
        self._closing = False
        self._agent = None

    # ---- an incarnation begins: all ranks at the same place of the program ----

    def attempt(self):
        """Tries to have the group in the network. True: it is. All ranks get the same answer."""
        incarnation = self._joined()
        with self.changed:
            if incarnation is None:
                self.pause.refused()
                return False
            self.incarnation, self.why = incarnation, None
            self.counts["incarnations"] += 1
            self.changed.notify_all()
        if self._agent is None:
            self._agent = threading.Thread(target=self._watch, name="netccl-agent", daemon=True)
            self._agent.start()
        return True

    def _joined(self):
        mine = {"name": uuid.uuid4().hex, "quant": self.quant, "retry": self.pause.first}
        try:
            library = client.shared()
            mine.update(wrong=None, address=library.address())
        except client.Unavailable as e:
            library, mine["wrong"] = None, str(e)
        everyone = self.link.everyone(mine)
        wrong = _sentences([e["wrong"] for e in everyone])
        for what in ("quant", "retry"):
            if len({e[what] for e in everyone}) > 1:
                wrong.append("NETCCL_%s differs between the ranks" % {"quant": "QUANT", "retry": "RETRY_OPS"}[what])
        if wrong:
            return self._without("; ".join(wrong))
        self.name = self.name or everyone[0]["name"]
        made = None
        if self.link.rank == 0:
            made = library.create([e["address"] for e in everyone], "netccl-" + self.name[:8])
        r, ticket = self.link.everyone(made)[0]
        if r:
            return self._without("the controller: " + ticket)
        r, handle = library.join(ticket, self.link.rank)
        wrong = _sentences(self.link.everyone(handle if r else None))
        if wrong:
            if not r:
                library.leave(handle)
            return self._without("; ".join(wrong))
        self.incarnations += 1
        return Incarnation(library, handle, self.changed, self.wake, "%s/%d" % (self.name, self.incarnations))

    def _without(self, why):
        if why != self.why and self.link.rank == 0:
            say.warn("a group of %d ranks goes without the network: %s" % (self.link.ranks, why))
        self.why = why
        return None

    # ---- operations ----

    def reserve(self, kind):
        """The next operation of the incarnation; None: it goes another way. Waits while the ranks agree after a failure."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.incarnation is None or not self.incarnation.frozen or self.incarnation.limit is not None)
                incarnation = self.incarnation
                if incarnation is not None and (not incarnation.frozen or incarnation.reserved < incarnation.limit):
                    self.counts["network"] += 1
                    return incarnation.reserve(kind)
                if self.dead is not None or not self.pause.passed():
                    self.counts["fallback"] += 1
                    return None
                self.changed.wait_for(lambda: self.incarnation is None)  # the agent still finishes the last one
                if self.dead is not None:
                    continue
            self.attempt()

    def submit(self, operation):
        with self.changed:
            incarnation = self.incarnation
            if incarnation is None:
                operation.over.set()
                operation.finish(RuntimeError("netccl: the group has ended: %s" % self.dead))
                return
        incarnation.submit(operation)

    def spoil(self, operation, error):
        """The call that reserved it has raised: this rank cannot bring its part, which is an error on all, and the end of the incarnation."""
        operation.spoiled = "%s: %s" % (type(error).__name__, error)
        with self.changed:
            if self.incarnation is not None:
                operation.ready.set()
                self.incarnation.fail(-errno.EIO, "an operation could not be begun: " + operation.spoiled)
                self.changed.notify_all()

    def await_result(self, operation, timeout=None):
        """False: not within `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        if not operation.over.wait(timeout):
            return False
        incarnation = self.incarnation
        if incarnation is not None and not operation.finished.is_set():
            incarnation.settle()
        return operation.finished.wait(None if end is None else max(0.0, end - time.monotonic()))

    # ---- the agent ----

    def _watch(self):
        looked = 0.0
        while not self._closing:
            incarnation = self.incarnation
            try:
                self.wake.get(timeout=0.002 if incarnation is not None and incarnation.crowded else recovery.POLL)
            except queue.Empty:
                pass
            incarnation = self.incarnation
            if incarnation is None:
                continue
            incarnation.settle()
            if incarnation.crowded:
                with self.changed:
                    incarnation.pump()
            if incarnation.failure is None and time.monotonic() - looked >= recovery.POLL:
                looked = time.monotonic()
                if self.alarm.rung(incarnation.name):
                    incarnation.fail(0, None)
            if incarnation.failure is not None and not self._closing:
                self._recover(incarnation)

    def _recover(self, incarnation):
        try:
            whys = recovery.recover(incarnation, self.alarm, self.link, self.pause.failed_after, self._time_limit)
            why = "; ".join(_sentences([w[1] if w and w[0] else None for w in whys])) or "no rank knows why"
            say.warn_if(self.link.rank == 0, "the network failed a group of %d ranks (%s); what was in flight was finished without it"
                        % (self.link.ranks, why))
            with self.changed:
                self.counts["recovered"] += 1
                self.why = why
                for operation in incarnation.operations.values():
                    operation.release()
        except Exception as e:  # a rank has gone, or torch's time limit passed
            self.dead = "the ranks could not agree after a failure of the network (%s): %s" % (incarnation.failure[1], e)
            incarnation.abandon(RuntimeError("netccl: " + self.dead))
        with self.changed:
            self.incarnation = None
            self.changed.notify_all()

    def _time_limit(self):
        if self._closing:
            raise RuntimeError("the process group is being destroyed")

    # ---- the end ----

    def close(self):
        """Waits until all ranks have their results, or LEAVING seconds; then the group is left."""
        incarnation = self.incarnation
        if incarnation is not None and not incarnation.idle():
            self._linger(incarnation)
        self._closing = True
        self.wake.put(None)
        if self._agent is not None:
            self._agent.join(LEAVING)
        with self.changed:
            incarnation, self.incarnation = self.incarnation, None
        if incarnation is not None:
            incarnation.stop()
            incarnation.abandon(RuntimeError("netccl: the process group has been destroyed"))

    def _linger(self, incarnation):
        end, step = time.monotonic() + LEAVING, 1
        while time.monotonic() < end and self.incarnation is incarnation:
            here = self.alarm.leaving(incarnation.name, step)
            if here is None or here >= self.link.ranks:
                return
            step = 0
            time.sleep(0.01)

    def status(self):
        with self.changed:
            return dict(self.counts, in_network=self.incarnation is not None and not self.incarnation.frozen, why=self.dead or self.why,
                        ranks=self.link.ranks, quant=self.quant)


def _retry():
    """ValueError: a line for the user."""
    text = os.environ.get("NETCCL_RETRY_OPS") or str(RETRY)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= Pause.MOST:
        raise ValueError("NETCCL_RETRY_OPS=%s: give a number of operations from 1 to %d" % (text, Pause.MOST))
    return int(text)


def _sentences(whys):
    """Who says what, by rank (None: nothing), the same sentence once."""
    said = {}
    for rank, why in enumerate(whys):
        if why:
            said.setdefault(why, []).append(str(rank))
    return ["rank%s %s: %s" % ("s" if len(r) > 1 else "", ", ".join(r), why) for why, r in said.items()]
