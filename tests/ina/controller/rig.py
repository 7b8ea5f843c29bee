# SPDX-License-Identifier: BSD-3-Clause
"""A living ha-controller in a directory of its own, and stubs of an independent gRPC (Debian's python3-grpcio)."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

try:
    import grpc
    from grpc_tools import protoc
except ImportError as why:
    print("skipped: python3-grpcio or python3-grpc-tools is not installed:", why)
    sys.exit(77)

OPTIONS = [("grpc.enable_http_proxy", 0)]


def ip(text):
    return int.from_bytes(socket.inet_aton(text), "big")


def compile_proto(folder, proto):
    """The modules that grpc_tools makes of a .proto."""
    name = os.path.basename(proto)[:-6]
    assert protoc.main(["protoc", "-I" + os.path.dirname(proto), "--python_out=" + folder, "--grpc_python_out=" + folder, proto]) == 0
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return __import__(name + "_pb2"), __import__(name + "_pb2_grpc")


class Rig:
    def __init__(self, program, settings, *options, listen=("127.0.0.1:0",)):
        self.program, self.options, self.listen = program, options, listen
        self.top = tempfile.mkdtemp(prefix="hawser-controller-")
        self.settings = os.path.join(self.top, "settings")
        self.log = os.path.join(self.top, "log")
        with open(self.settings, "w") as file:
            file.write(settings)
        self.process = None
        self.port = 0

    def start(self, *more):
        listen = ["--listen=" + at.replace(":0", ":%d" % self.port) if self.port and at.endswith(":0") else "--listen=" + at
                  for at in self.listen]
        begin = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, "--settings=" + self.settings, "--database=" + self.top + "/db",
                                             "--metrics=127.0.0.1:0", *listen, *self.options, *more], stderr=log)
        for _ in range(600):
            with open(self.log) as log:
                log.seek(begin)
                text = log.read()
            if "in quarantine" in text:
                break
            assert self.process.poll() is None, text
            time.sleep(0.05)
        else:
            raise AssertionError("the controller does not start: " + text)
        self.port = int(re.search(r"\(port (\d+)\)", text)[1])
        self.metrics_port = int(re.search(r"metrics on port (\d+)", text)[1])

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(timeout=300)
        self.process = None
        return code

    def remove(self):
        if self.process:
            self.stop(signal.SIGKILL)
        shutil.rmtree(self.top)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *what):
        if what[0]:
            with open(self.log) as log:
                print(log.read()[-2000:])
        self.remove()


def refused(call, request, code, words):
    """The call ends with this status, and a message that has these words."""
    try:
        answer = call(request, timeout=300)
    except grpc.RpcError as error:
        assert error.code() == code, (error.code(), error.details())
        assert words in error.details(), error.details()
    else:
        raise AssertionError("not refused: %s" % answer)
