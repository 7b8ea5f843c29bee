# SPDX-License-Identifier: BSD-3-Clause
"""What async_op=True returns: torch's Work, of an operation in the network or of one that needed nothing."""

import queue
import threading

import torch

_completions = queue.SimpleQueue()
_thread = None
_thread_lock = threading.Lock()


def _complete():
    while True:
        future, value, error = _completions.get()
        try:
            future.set_exception(error) if error is not None else future.set_result(value)
        except Exception:  # a callback of the user's raised: torch has kept it in the callback's own future
            pass


def _later(future, value, error):
    """A thread of its own: callbacks may start operations and wait for them."""
    global _thread
    with _thread_lock:
        if _thread is None:
            _thread = threading.Thread(target=_complete, name="netccl-futures", daemon=True)
            _thread.start()
    _completions.put((future, value, error))


class Work:
    def __init__(self, context, operation, value):
        self._context, self._operation, self._value = context, operation, value
        self._future, self._lock = None, threading.Lock()

    def wait(self, timeout=None):
        """True when the result is in the caller's memory, on every stream. timeout: a timedelta; RuntimeError when it has passed."""
        seconds = timeout.total_seconds() if timeout else None
        if not self._context.await_result(self._operation, seconds or None):
            raise RuntimeError("netccl: the operation did not end within %g s; it goes on" % seconds)
        if self._operation.error is not None:
            raise self._operation.error
        return True

    synchronize = wait

    def is_completed(self):
        return self._operation.finished.is_set()

    def is_success(self):
        return self.is_completed() and self._operation.error is None

    def exception(self):
        return self._operation.error

    def result(self):
        self.wait()
        return self._value

    def get_future(self):
        """Its value is a list of the tensors, as torch's works have it."""
        with self._lock:
            if self._future is None:
                self._future = _future(self._value)
                operation, future, value = self._operation, self._future, self._value
                operation.when_finished(lambda: _later(future, value, operation.error))
            return self._future


class Done:
    """Nothing was to be done."""

    def __init__(self, value):
        self._value = value

    def wait(self, timeout=None):
        return True

    synchronize = wait

    def is_completed(self):
        return True

    is_success = is_completed

    def exception(self):
        return None

    def result(self):
        return self._value

    def get_future(self):
        future = _future(self._value)
        future.set_result(self._value)
        return future


def _future(value):
    devices = {t.device for t in value if t.is_cuda}
    return torch.futures.Future(devices=list(devices)) if devices else torch.futures.Future()
