# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces of a test's own, without names: they are gone with the test's process, however it ends.

Space() is one; str() of it is a path that `ip link ... netns` and `inside` take (`ip -n` wants a name, and a root that is a mount point).
What runs in it (popen) dies with the test too, and a folder() of files goes with it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result, what):
    if result:
        error = ctypes.get_errno()
        raise OSError(error, "%s: %s" % (what, os.strerror(error)))


def ip(*words):
    subprocess.run(("ip", *map(str, words)), check=True)


def folder(prefix):
    """A new folder for files, in /tmp. Whoever holds the other end of a pipe that this process has takes it away, a second after the process."""
    path = tempfile.mkdtemp(prefix=prefix)
    end, _ours = os.pipe()  # ours stays open to the end; programs that are started do not inherit it
    subprocess.run(["setsid", "--fork", "sh", "-c", 'read -r _; sleep 1; rm -rf -- "$1"', "folder", path], stdin=end, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    os.close(end)
    return path


def _die_with_test():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Space:
    def __init__(self):
        """OSError: this process may not make one; it needs root."""
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            _checked(_libc.unshare(CLONE_NEWNET), "a network namespace")
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        finally:
            _checked(_libc.setns(here, CLONE_NEWNET), "back from a network namespace")
            os.close(here)
        self.path = "/proc/%d/fd/%d" % (os.getpid(), self.fd)
        self.ip("link", "set", "lo", "up")

    def __str__(self):
        return self.path

    @contextlib.contextmanager
    def here(self):
        """This thread is in it; what it opens stays there."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        _checked(_libc.setns(self.fd, CLONE_NEWNET), "into a network namespace")
        try:
            yield
        finally:
            _checked(_libc.setns(before, CLONE_NEWNET), "back from a network namespace")
            os.close(before)

    def ip(self, *words):
        with self.here():
            ip(*words)

    def command(self, words):
        return [INSIDE, self.path, *words]

    def run(self, *words, **how):
        return subprocess.run(self.command(words), check=False, **how)

    def popen(self, *words, **how):
        return popen(*self.command(words), **how)

    def close(self):
        os.close(self.fd)


def popen(*words, **how):
    """A process that is killed when the test's thread that started it has gone."""
    return subprocess.Popen(words, preexec_fn=_die_with_test, **how)
