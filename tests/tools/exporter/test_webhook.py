#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_webhook.py FLOOD HAWSER-EXPORTER HA PLUGIN: webhooks beside a job whose cable is cut: each event that the journal has, with its
fields; a receiver that is gone, slow or answers errors misses nothing that there is room for, and delays nobody."""

import json
import os
import subprocess
import sys
import threading

from beside import Authority, Receiver, await_true, check, run

FLOOD = sys.argv[1]
DONE = (204, b"", {})


def events_of(receiver):
    return [json.loads(r.body) for r in receiver.taken()]


def is_same(entry, event):
    """An entry of the journal, and what a webhook got."""
    return (entry["MESSAGE"] == event["message"] and entry["HAWSER_EVENT"] == event["event"] and entry["HAWSER_CAUSE"] == event["cause"]
            and entry["HAWSER_DEVICE"] == event.get("device", "") and entry["HAWSER_CONNECTION"] == event.get("connection", "")
            and entry["HAWSER_PEER_DEVICE"] == event.get("peer_device", "") and int(entry["HAWSER_STALL_NS"]) == event.get("stall_ns", 0)
            and int(entry["HAWSER_REPLAYED_BYTES"]) == event.get("bytes", 0) and entry["HAWSER_JOB"] == event["job"]
            and int(entry["OBJECT_PID"]) == event["pid"]
            and {"3": "error", "4": "warning", "5": "notice"}[entry["PRIORITY"]] == event["severity"])


def check_same(scene, receiver, port):
    """The receiver has what the journal has, in its order, each once."""
    name = "127.0.0.1:%d\"" % receiver.port
    entries = scene.entries()
    await_true("it has them all", lambda: len(receiver.taken()) >= len(entries))
    events = events_of(receiver)
    for number, (entry, event) in enumerate(zip(entries, events)):
        check(is_same(entry, event), "number", number, "is not the same:", entry, event)
    await_true("all are counted", lambda: scene.metric(port, "hawser_webhook_sent_total", name) == len(receiver.taken()))
    check(scene.metric(port, "hawser_webhook_dropped_total", name) == 0, "dropped:", scene.get(port))


def each_event(scene):
    """Two receivers, one of them over TLS with a token: what the journal has; a token that is replaced."""
    authority = Authority(scene.path("ca"))
    plain, safe = Receiver(lambda r: DONE), Receiver(lambda r: DONE, authority.tls)
    headers = scene.write("headers", "# whose\nAuthorization: Bearer first\nX-Team: network\n")
    _, port = scene.start_exporter("--webhook", "http://127.0.0.1:%d/hook?team=a" % plain.port, "--webhook",
                                   "https://127.0.0.1:%d/in" % safe.port, "--webhook-headers", headers, "--webhook-ca", authority.ca)
    scene.start_job(port)
    scene.fail_over(port)
    check_same(scene, plain, port)
    check_same(scene, safe, port)
    check({"failed_over", "device", "recovered", "not_protected"} <= {e["event"] for e in events_of(plain)}, events_of(plain))
    for event in events_of(plain):
        check(event["host"] == os.uname().nodename and event["time"].endswith("Z"), event)
    for request in plain.requests:
        check(request.command == "POST" and request.path == "/hook?team=a", request.command, request.path)
        check(request.headers["Content-Type"] == "application/json", request.headers)
        check(request.headers["User-Agent"].startswith("hawser-exporter/"), request.headers)
        check("Authorization" not in request.headers, "the token of the other receiver")
    scene.write("headers", "Authorization: Bearer second\n")
    scene.fail_over(port)
    check_same(scene, safe, port)
    tokens = [r.headers["Authorization"] for r in safe.requests]
    # (an event of the first failover may come late, with either)
    first = tokens.count("Bearer first")
    check(0 < first < len(tokens) and tokens == ["Bearer first"] * first + ["Bearer second"] * (len(tokens) - first), tokens)
    check(safe.requests[0].headers["X-Team"] == "network", safe.requests[0].headers)
    # Who looks once sends what the pages have.
    once = Receiver(lambda r: DONE)
    subprocess.run([scene.exporter, "--once", "--journal", "none", "--dir", scene.path("pages"), "--webhook",
                    "http://127.0.0.1:%d/" % once.port], env=scene.env, check=True)
    await_true("no event is missing", lambda: {(e["pid"], e["number"]) for e in events_of(plain)} >= {
        (e["pid"], e["number"]) for e in events_of(once)})
    check("failed_over" in {e["event"] for e in events_of(once)}, events_of(once))
    text = scene.get(port)
    check("team=a" not in text and "/hook" not in text, "the whole URL is in the metrics")


def gone_and_back(scene):
    """No listener, then errors, then a receiver that takes them: nothing is missing, and the order holds."""
    state = {"answer": (500, b"out of\x1b[31m order", {})}
    receiver = Receiver(lambda r: state["answer"])
    receiver.close()
    process, port = scene.start_exporter("--webhook", "http://127.0.0.1:%d/" % receiver.port)
    scene.start_job(port)
    scene.fail_over(port)
    await_true("requests fail", lambda: scene.metric(port, "hawser_webhook_failed_total") >= 2)
    check(scene.metric(port, "hawser_webhook_sent_total") == 0, "sent to nobody")
    await_true("all wait", lambda: scene.metric(port, "hawser_webhook_waiting") == len(scene.entries()))
    receiver.open()
    await_true("it is asked again", lambda: receiver.count() >= 2)
    check(len({r.body for r in receiver.requests}) == 1, "another event before the first one was taken")
    state["answer"] = (503, b"", {"Retry-After": "1"})
    asked = receiver.count()
    await_true("it is asked again", lambda: receiver.count() > asked)
    state["answer"] = DONE
    check_same(scene, receiver, port)
    check(scene.log("exporter").count("takes no events") == 1 and "\x1b" not in scene.log("exporter"), "the log")
    check("takes events again" in scene.log("exporter"), "the log")
    # What it will never take is dropped, and the next one is sent.
    state["answer"] = (404, b"", {})
    scene.fail_over(port)
    await_true("all are sent or refused", lambda: scene.metric(port, "hawser_webhook_dropped_total") == len(scene.entries()) - len(
        receiver.taken()) > 0)
    # It ends in order.
    process.terminate()
    check(process.wait() == 0, "it ends with", process.returncode)


def slow(scene):
    """While a receiver holds a request, the other one, the journal and the metrics go on; at the end it is not waited for."""
    release, ended = threading.Event(), threading.Event()

    def hold(request):
        if not release.is_set():
            request.connection.setblocking(True)
            if not request.connection.recv(1):  # the exporter has given up
                ended.set()
            return None
        return DONE

    holder, other = Receiver(hold), Receiver(lambda r: DONE)
    process, port = scene.start_exporter("--webhook", "http://127.0.0.1:%d/" % holder.port, "--webhook",
                                         "http://127.0.0.1:%d/" % other.port)
    scene.start_job(port)
    scene.fail_over(port)
    await_true("a request is held", lambda: holder.count() == 1)
    scene.fail_over(port)
    for _ in range(20):
        scene.get(port)
    check_same(scene, other, port)
    name = "127.0.0.1:%d\"" % holder.port
    await_true("all wait", lambda: scene.metric(port, "hawser_webhook_waiting", name) == len(scene.entries()))
    check(holder.count() == 1 and not ended.is_set(), "the request has timed out meanwhile")
    process.terminate()
    check(process.wait() == 0, "it ends with", process.returncode)
    check("events not sent" in scene.log("exporter"), "the log")


def flooded(scene):
    """Of more events than may wait the oldest are dropped, and counted."""
    release = threading.Event()

    def hold_first(_):
        release.wait()
        return DONE

    receiver = Receiver(hold_first)
    flood = scene.start("flood", FLOOD, "webhook", "http://127.0.0.1:%d/" % receiver.port, "600", stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
    await_true("the first one is on its way", lambda: receiver.count() == 1)
    flood.stdin.write("go\n")
    flood.stdin.flush()
    line = flood.stdout.readline()
    check(line == "written, 513 waiting, 87 dropped\n", line)
    release.set()
    line = flood.stdout.readline()
    check(line == "513 sent, 87 dropped, 0 failed\n", line)
    check(flood.wait() == 0, "flood ends with", flood.returncode)
    events = events_of(receiver)
    check([e["number"] for e in events] == [0, *range(88, 600)], [e["number"] for e in events])
    check([e["event"] for e in events] == [("failed_over", "slow")[e["number"] % 2] for e in events], [e["event"] for e in events])
    check(events[0]["connection"] == "mlx5_0:1 -> \"host\"[1] mlx5_0:1" and events[0]["bytes"] == 2 ** 64 - 1, events[0])


def names(scene):
    """Each webhook has a series of its own, also two on one host, and none shows more of its URL than that."""
    out = scene.path("out.prom")
    urls = ("http://127.0.0.1:1/secret", "http://127.0.0.1:1/other", "https://receiver.example/secret?a=b", "http://127.0.0.1:11/")
    words = [word for url in urls for word in ("--webhook", url)]
    subprocess.run([scene.exporter, "--once", "--journal", "none", "--dir", scene.path("pages"), "--textfile", out, *words], env=scene.env,
                   check=True)
    with open(out, encoding="utf-8") as lines:
        series = [line.split(" 0")[0] for line in lines if line.startswith("hawser_webhook_waiting{")]
    check(series == ['hawser_webhook_waiting{receiver="%s"}' % name for name in
                     ("http://127.0.0.1:1", "http://127.0.0.1:1 #2", "https://receiver.example:443", "http://127.0.0.1:11")], series)


def refusals(scene):
    """One clear line each."""
    def say(*options):
        run_ = subprocess.run([scene.exporter, "--once", "--journal", "none", "--dir", scene.path("pages"), *options], env=scene.env,
                              capture_output=True, text=True, check=False)
        check(run_.stderr.count("\n") == 1 or not run_.stderr, run_.stderr)
        return run_.returncode, run_.stderr
    for url in ("ftp://h/", "nonsense", "http://h:99999/", ""):
        check(say("--webhook", url) == (2, "hawser-exporter: --webhook: it is no http or https URL\n"), url, say("--webhook", url))
    status, text = say("--webhook", "https://user:secret@h/")
    check(status == 2 and "--webhook-headers" in text and "secret" not in text, text)
    status, text = say("--webhook-headers", "/dev/null", "--webhook", "http://h/")
    check(status == 2 and "behind the --webhook" in text, text)
    status, text = say("--webhook", "http://h/", "--webhook-headers", scene.path("none"))
    check(status == 1 and "--webhook-headers" in text, text)
    status, text = say("--kubernetes")
    check(status == 1 and "KUBERNETES_SERVICE_HOST" in text, text)
    check(say()[0] == 0, say())
    # Who asks for neither needs no libcurl.
    check("libcurl" not in subprocess.run(["ldd", scene.exporter], capture_output=True, text=True, check=True).stdout, "libcurl is linked")
    for name in ("libcurl-gnutls.so.4", "libcurl.so.4"):
        scene.write(name, "")
    scene.env["LD_LIBRARY_PATH"] = scene.top
    status, text = say("--webhook", "http://h/")
    check(status == 1 and "libcurl3-gnutls" in text, text)
    check(say() == (0, ""), say())


if __name__ == "__main__":
    run((refusals, names, each_event, gone_and_back, slow, flooded), sys.argv[2:])
