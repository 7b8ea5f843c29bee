# SPDX-License-Identifier: BSD-3-Clause
"""For test_webhook.py and test_kubernetes.py: a job over the software NIC, the exporter beside it, its journal, and HTTP receivers
whose answers the test chooses."""

import http.server
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import types
import urllib.request

# For the job: no time-out of a busy machine, so that what happens is what the test does.
QUIET = {"HA_NCCL_SILENCE_MS": "0", "HA_NCCL_QP_TIMEOUT": "24", "HA_NCCL_HEARTBEAT_MS": "60000", "HA_NCCL_RTO_MS": "60000"}
LIMIT = 600  # seconds that only a hang reaches


class Failure(Exception):
    pass


def check(true, *what):
    if not true:
        raise Failure(" ".join(str(w) for w in what))


def await_true(what, look):
    """Until look() is true; returns it."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise Failure("never so in %d s: %s" % (LIMIT, what))


class Receiver:
    """An HTTP server whose answers are what answer(request) returns: (status, body, headers), or None: the connection is closed
    without one. Requests are kept in their order."""

    def __init__(self, answer, tls=None):
        self.answer, self.tls, self.requests, self.lock, self.port, self.server = answer, tls, [], threading.Lock(), 0, None
        self.open()

    def open(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                # A connection has one handler for all its requests.
                request = types.SimpleNamespace(command=self.command, path=self.path, headers=self.headers, connection=self.connection,
                                                status=0, body=self.rfile.read(int(self.headers.get("Content-Length", 0))))
                with receiver.lock:
                    receiver.requests.append(request)
                answered = receiver.answer(request)
                request.status = answered[0] if answered else 0
                if answered is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                status, body, headers = answered
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = handle_any

            def log_message(self, *words):
                pass

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request, client_address):  # a peer that is gone, or wants no TLS with us
                pass

            def finish_request(self, request, client_address):
                if receiver.tls:  # here, so that a handshake holds up nobody else
                    request = receiver.tls.wrap_socket(request, server_side=True)
                super().finish_request(request, client_address)

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        """From now on nobody listens on the port."""
        self.server.shutdown()
        self.server.server_close()

    def count(self):
        with self.lock:
            return len(self.requests)

    def taken(self):
        """The requests that it answered with 2xx."""
        with self.lock:
            return [r for r in self.requests if r.status // 100 == 2]


class Authority:
    """A certification authority of its own; its server has a certificate for 127.0.0.1."""

    def __init__(self, folder):
        os.mkdir(folder)
        self.ca = os.path.join(folder, "ca.crt")
        key, request, cert = (os.path.join(folder, "server." + end) for end in ("key", "csr", "crt"))
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                     "-keyout", os.path.join(folder, "ca.key"), "-out", self.ca)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server", "-keyout", key,
                     "-out", request)
        names = os.path.join(folder, "names")
        with open(names, "w", encoding="utf-8") as out:
            out.write("subjectAltName=IP:127.0.0.1\n")
        self.openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", os.path.join(folder, "ca.key"), "-CAcreateserial", "-days",
                     "2", "-extfile", names, "-out", cert)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(cert, key)

    @staticmethod
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)


class Scene:
    """Its own control folder, pages and journal; ends every process that it started."""

    def __init__(self, exporter, ha, plugin):
        self.exporter, self.ha, self.plugin = exporter, ha, plugin
        self.top = tempfile.mkdtemp()
        self.processes, self.journal, self.lock = [], [], threading.Lock()
        os.mkdir(self.path("control"), 0o700)
        self.env = dict(os.environ, HA_NCCL_VERBS="soft", SOFTROCE_CONTROL=self.path("control"), HA_NCCL_STATUS_DIR=self.path("pages"))
        for name in [n for n in self.env if n.lower().endswith("_proxy") or n.startswith(("KUBERNETES_", "NODE_NAME"))]:
            del self.env[name]
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path("journal.sock"))
        threading.Thread(target=self.read_journal, daemon=True).start()

    def path(self, name):
        return os.path.join(self.top, name)

    def write(self, name, text):
        """The file at once and whole, as a kubelet replaces it."""
        path = self.path(name)
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write(text)
        os.rename(path + ".new", path)
        return path

    def read_journal(self):
        while True:
            entry = dict(line.split("=", 1) for line in self.socket.recv(65536).decode().strip().split("\n"))
            with self.lock:
                self.journal.append(entry)

    def entries(self):
        with self.lock:
            return list(self.journal)

    def start(self, name, *words, env=None, **more):
        with open(self.path(name + ".log"), "w", encoding="utf-8") as log:
            process = subprocess.Popen(words, stderr=log, env=dict(self.env, **(env or {})), **more)
        self.processes.append(process)
        return process

    def log(self, name):
        with open(self.path(name + ".log"), encoding="utf-8") as log:
            return log.read()

    def start_exporter(self, *options, name="exporter", env=None):
        """(process, its port)"""
        process = self.start(name, self.exporter, "--dir", self.path("pages"), "--metrics", "127.0.0.1:0", "--interval", "50", "--journal",
                             self.path("journal.sock"), "--timeout", "%ds" % LIMIT, *options, env=env)

        def port():
            check(process.poll() is None, "the exporter has ended:", self.log(name))
            return re.search(r"serves port (\d+)", self.log(name))
        return process, int(await_true("it serves a port", port)[1])

    def start_job(self, port):
        """Two ranks whose four ends of connections have a standby."""
        job = self.start("job", self.ha, "perf", "sendrecv", "--plugin", self.plugin, "--ranks", "2", "-b", "64K", "-e", "64K", "--duration",
                         "1800s", "--compute", "5ms", stdout=subprocess.DEVNULL, env=QUIET)

        def ready():
            check(job.poll() is None, "the job has ended:", self.log("job"))
            return (self.metric(port, "hawser_plugin_connections") == 4 and self.metric(port, "hawser_plugin_messages_total")
                    and self.metric(port, "hawser_plugin_events_total", "event=\"protected\"") >= 4)
        await_true("the job is protected", ready)

    def cable(self, verb):
        subprocess.run([self.ha, verb, "soft0"], check=True, env=self.env, stdout=subprocess.DEVNULL)

    def fail_over(self, port):
        """The cable out and in again, until every connection has a standby as before."""
        def count(event):
            return sum(e["HAWSER_EVENT"] == event for e in self.entries())
        before = count("failed_over"), count("recovered")
        self.cable("cut")
        await_true("a failover in the journal", lambda: count("failed_over") > before[0])
        self.cable("heal")
        await_true("the path is back, in the journal", lambda: count("recovered") > before[1])
        await_true("the job is protected", lambda: not self.metric(port, "hawser_plugin_unprotected_connections"))

    @staticmethod
    def get(port, path="/metrics"):
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=LIMIT) as answer:
            return answer.read().decode()

    def metric(self, port, name, part=""):
        """The sum of the series whose labels have that part."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.get(port).split("\n")
                   if re.match(re.escape(name) + r"[{ ]", line) and part in line)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.top, ignore_errors=True)


def run(parts, arguments):
    """Every part with a scene of its own; the first one that fails ends the test."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with what the scene cleans up
    for part in parts:
        scene = Scene(*arguments)
        try:
            part(scene)
            print("%s: as it should be" % part.__name__, flush=True)
        except Failure as failure:
            print("%s: %s" % (part.__name__, failure), file=sys.stderr)
            for name in sorted(os.listdir(scene.top)):
                if name.endswith(".log"):
                    print("%s: %s" % (name, scene.log(name[:-4])[-2000:]), file=sys.stderr)
            sys.exit(1)
        finally:
            scene.close()
