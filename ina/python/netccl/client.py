# SPDX-License-Identifier: BSD-3-Clause
"""This process's connection with its host's backend, one for all groups (libhawser-ina.so).

Any thread may call. `lock` is held for what is short; who asks for a group, or joins one, waits for the controller without it, so that
other groups' operations go on. The library reports ends of operations from a thread of its own, which must not call back; it sets
events and nothing else.
"""

import contextlib
import ctypes
import ctypes.util
import difflib
import errno
import os
import threading
import warnings

from . import capi


NAME = "libhawser-ina.so.0"  # with the release of its interface that capi.py has


GONE = "the backend has gone, and none was there since"  # another thread found it so and has let go of the connection


# Every variable that begins with NETCCL_, whichever program reads it (base/config_entry.c has the same).
VARIABLES = ["NETCCL_" + name for name in (
    "BACKEND", "BIND_ADDR", "CONTROLLER_ADDR", "CONTROLLER_CA", "CONTROLLER_CERT", "CONTROLLER_KEY", "COPY_BUFFER", "FRONTEND_LOOPBACK",
    "LB_LOOPBACK", "LIBRARY", "PACKET_LOOPBACK", "QUANT", "RETRY_OPS", "WORKER_LOOPBACK")]


def check_names(environ=os.environ):
    """Warns once of each NETCCL_ variable that is set and that nobody reads."""
    for name in sorted(environ):
        if name.startswith("NETCCL_") and name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, 1, 0.8)
            warnings.warn("%s is set, but there is no such variable%s; docs/configuration.md lists them" %
                          (name, "; did you mean " + near[0] if near else ""), stacklevel=2)


class Unavailable(Exception):
    """No library, or no backend; the text says which and what to do."""


def candidates():
    """Where the library may be, best first."""
    if os.environ.get("NETCCL_LIBRARY"):
        return [os.environ["NETCCL_LIBRARY"]]
    here = os.path.dirname(os.path.abspath(__file__))
    up = lambda n: os.path.normpath(os.path.join(here, *[".."] * n))
    places = [here, os.path.join(up(3), "build"), up(3)]  # beside the package, in a checkout, in PREFIX/lib
    files = [os.path.join(place, NAME) for place in places]
    return [f for f in files if os.path.exists(f)] + [NAME] + list(filter(None, [ctypes.util.find_library("hawser-ina")]))


def find():
    """The library. Unavailable: with each place and what was wrong there."""
    check_names()
    wrong = []
    for path in candidates():
        try:
            return capi.load(path)
        except (OSError, AttributeError) as e:
            wrong.append(str(e))
    raise Unavailable("libhawser-ina.so is not to be had; name it in NETCCL_LIBRARY (%s)" % "; ".join(wrong))


class Client:
    def __init__(self, library):
        self.library = library
        self.lock = threading.RLock()
        self.asking = 0  # threads that wait for the backend's answer: the connection is not closed under them
        self.answered = threading.Condition(self.lock)
        self.handle = None
        self.stale = False  # the backend has gone: open again when no group is left
        self.groups = 0
        self._give_up = ctypes.c_int(0)  # of the connection, and not freed before it: not 0 as soon as who waits for the backend is wanted back
        self._running = {}  # operations whose end has not been reported, by the number that the library hands back
        self._next = 1
        self._notify = capi.NOTIFY(self._ended)

    def open(self):
        """Attached afterwards. Unavailable: the library's sentence."""
        with self.lock:
            if self.handle and self.stale and not self.groups and not self.asking:
                self.close()
            if self.handle:
                if self.stale:
                    raise Unavailable("the backend has gone, and groups that used it have not been left yet")
                return
            handle, why = ctypes.c_void_p(), ctypes.create_string_buffer(256)
            self._give_up = ctypes.c_int(0)
            r = self.library.ha_ina_open(ctypes.byref(handle), ctypes.pointer(capi.Options(give_up=ctypes.pointer(self._give_up))), why, len(why))
            if r:
                raise Unavailable(why.value.decode(errors="replace") or os.strerror(-r))
            self.handle, self.stale = handle, False

    def give_up(self):
        """Who waits for the backend or the controller comes back, with an error; also who holds the lock for that."""
        self._give_up.value = 1

    def close(self):
        """Waits for nobody's answer."""
        self.give_up()
        with self.lock:
            self.answered.wait_for(lambda: not self.asking)
            if self.handle:
                self.library.ha_ina_close(self.handle)
            self.handle, self.groups = None, 0

    def address(self):
        with self.lock:
            if not self.handle:
                raise Unavailable(GONE)
            return self.library.ha_ina_address(self.handle)

    @contextlib.contextmanager
    def _ask(self):
        """The connection, without the lock: it stays open."""
        with self.lock:
            self.asking += 1
            handle = self.handle
        try:
            yield handle
        finally:
            with self.lock:
                self.asking -= 1
                self.answered.notify_all()

    def _said(self, r):
        """Of this thread's last call."""
        if r == -errno.ENOTCONN:
            self.stale = True
        text = self.library.ha_ina_error(self.handle)
        return r, (text or b"").decode(errors="replace") or os.strerror(-r)

    def create(self, addresses, name):
        """(0, ticket) or (negative errno, sentence)."""
        with self._ask() as handle:
            if not handle:
                return -errno.ENOTCONN, GONE
            ticket = capi.Ticket()
            members = (ctypes.c_uint32 * len(addresses))(*addresses)
            r = self.library.ha_ina_group_create(handle, members, len(addresses), name.encode(), ticket)
            return self._said(r) if r else (0, bytes(ticket))

    def join(self, ticket, rank):
        """(0, group) or (negative errno, sentence)."""
        with self._ask() as handle:
            if not handle:
                return -errno.ENOTCONN, GONE
            group = ctypes.c_void_p()
            r = self.library.ha_ina_group_join(handle, capi.Ticket(*ticket), rank, ctypes.byref(group))
            if r:
                return self._said(r)
            with self.lock:
                self.groups += 1
            return 0, group

    def leave(self, group):
        """Operations in flight end with -ECANCELED."""
        with self.lock:
            if self.handle:
                self.library.ha_ina_group_leave(group)
                self.groups -= 1

    def post(self, group, request, operation):
        """(0, op) or (negative errno, sentence). operation.library_ended(result) is called once, from a thread of the library's."""
        with self.lock:
            op = ctypes.c_void_p()
            r = self.library.ha_ina_post(group, ctypes.byref(request), ctypes.byref(op))
            if r:
                return self._said(r)
            number, self._next = self._next, self._next + 1
            self._running[number] = operation
            r = self.library.ha_ina_notify(op, self._notify, number)
            if r:
                del self._running[number]
                self.library.ha_ina_op_free(op)
                return self._said(r)
            return 0, op

    def _ended(self, number, result):
        operation = self._running.pop(number, None)
        if operation is not None:
            if result == -errno.ENOTCONN:
                self.stale = True
            operation.library_ended(result)

    def collect(self, op):
        """Of an operation that has ended: what it met, and which segments are here. The operation is no more."""
        with self.lock:
            met = self.library.ha_ina_op_met(op)
            done = [self.library.ha_ina_op_done(op, s) for s in range(self.library.ha_ina_op_segments(op))]
            self.library.ha_ina_op_free(op)
            return met, done


_client = None
_client_lock = threading.Lock()


def shared():
    """The process's client, attached."""
    global _client
    with _client_lock:
        if _client is None:
            _client = Client(find())
    _client.open()
    return _client


def forked():
    """In the child: a connection of its own, when it wants one. The parent's is closed by the library, and left alone."""
    global _client, _client_lock
    _client, _client_lock = None, threading.Lock()


def give_up():
    """This process ends: nobody waits for answers any more."""
    if _client is not None:
        _client.give_up()


def shut():
    if _client is not None:
        _client.close()
