#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_kubernetes.py FLOOD HAWSER-EXPORTER HA PLUGIN: the node's events beside a job whose cable is cut, in an API server that checks
what the real one checks (path, method, token, media type; core/v1 Event by the published model; the rules of the server's
ValidateEventCreate for core/v1) and that answers 401, 403, 404 and 409 where it would. What is written is read back by the Python
client of Kubernetes."""

import copy
import datetime
import json
import re
import subprocess
import sys
import threading

from beside import Authority, Receiver, await_true, check, run

try:
    import kubernetes
except ImportError:
    print("skipped: no python3-kubernetes (scripts/install-deps test)")
    sys.exit(77)

FLOOD = sys.argv[1]
NODE = "gpu-node-7.example"
EVENTS = "/api/v1/namespaces/default/events"
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
# Reason: event and cause of the journal's entries; None: any cause.
PORT_DOWN = {"HawserPortDown": ("device", "port_down")}
REASONS = {"HawserFailover": ("failed_over", None), "HawserRecovered": ("recovered", None), "HawserUnprotected": ("not_protected", None),
           "HawserPortUp": ("device", "port_up"), **PORT_DOWN}
SCALARS = {"str": str, "int": int, "datetime": str}


def check_model(value, kind, where):
    """No field that the published model does not have, and each of its type."""
    if kind in SCALARS:
        check(isinstance(value, SCALARS[kind]) and not isinstance(value, bool), where, "is no", kind + ":", value)
        if kind == "datetime":
            check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value), where, "is no time:", value)
        return
    model = getattr(kubernetes.client, kind)
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for key, one in value.items():
        check(key in names, "%s: %s has no field %s" % (where, kind, key))
        check_model(one, model.openapi_types[names[key]], where + "." + key)


def check_event(event):
    """What the API server checks when an Event of core/v1 is created or changed."""
    check(event["apiVersion"] == "v1" and event["kind"] == "Event", event)
    check_model(event, "CoreV1Event", "Event")
    name, about = event["metadata"]["name"], event["involvedObject"]
    check(re.fullmatch(SUBDOMAIN, name) and len(name) <= 253, "metadata.name:", name)
    check(event["metadata"]["namespace"] == "default" and "namespace" not in about, "the namespace of what has none is default")
    check((about["kind"], about["apiVersion"], about["name"], about["uid"]) == ("Node", "v1", NODE, NODE), about)
    check(event["type"] in ("Normal", "Warning") and re.fullmatch(r"Hawser[A-Za-z]{1,120}", event["reason"]), event)
    check(event["source"] == {"component": "hawser-exporter", "host": NODE}, event["source"])
    check(event["reportingComponent"] == "hawser-exporter" and event["reportingInstance"] == NODE, event)
    check(event["count"] >= 1 and event["firstTimestamp"] <= event["lastTimestamp"] and len(event["message"]) <= 1024, event)


LOST = (0, b"", {})  # for Api.fault: the connection is closed without an answer


class Api:
    """The part of an API server that has events."""

    def __init__(self, scene, authority):
        self.token, self.objects, self.fault, self.wrong = "token-1", {}, None, []
        self.created = self.patched = 0
        self.receiver = Receiver(self.answer, authority.tls)
        self.account = scene.path("account")
        self.scene = scene
        subprocess.run(["mkdir", self.account], check=True)
        scene.write("account/token", self.token + "\n")
        with open(authority.ca, encoding="utf-8") as ca:
            scene.write("account/ca.crt", ca.read())
        self.env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.receiver.port), "NODE_NAME": NODE,
                    "https_proxy": "http://127.0.0.1:1"}

    @staticmethod
    def status(code, reason, message):
        return code, json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                                 "reason": reason, "code": code}).encode(), {"Content-Type": "application/json"}

    def answer(self, request):
        with self.receiver.lock:
            try:
                done = self.answer_one(request)
                return None if done == LOST else done
            except Exception as wrong:  # of this thread; the test looks at it
                self.wrong.append("%s %s %s: %r" % (request.command, request.path, request.body, wrong))
                return self.status(422, "Invalid", str(wrong))

    def answer_one(self, request):
        if request.headers["Authorization"] != "Bearer " + self.token:
            return self.status(401, "Unauthorized", "Unauthorized")
        if self.fault:
            done = self.fault(request)
            if done:
                return done
        if request.command == "GET" and request.path.split("?")[0] == EVENTS:
            return self.done(200, {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": list(self.objects.values())})
        if request.command == "POST" and request.path == EVENTS:
            return self.create(request)
        if request.command == "PATCH" and request.path.startswith(EVENTS + "/"):
            return self.patch(request, request.path[len(EVENTS) + 1:])
        check(False, "no such request")

    @staticmethod
    def done(code, body):
        return code, json.dumps(body).encode(), {"Content-Type": "application/json"}

    def create(self, request):
        check(request.headers["Content-Type"] == "application/json", request.headers["Content-Type"])
        event = json.loads(request.body)
        check_event(event)
        name = event["metadata"]["name"]
        if name in self.objects:
            return self.status(409, "AlreadyExists", 'events "%s" already exists' % name)
        self.objects[name] = event
        self.created += 1
        return self.done(201, event)

    def patch(self, request, name):
        check(request.headers["Content-Type"] in ("application/merge-patch+json", "application/strategic-merge-patch+json"),
              request.headers["Content-Type"])
        if name not in self.objects:
            return self.status(404, "NotFound", 'events "%s" not found' % name)
        change = json.loads(request.body)
        check(set(change) == {"count", "lastTimestamp", "message"}, "a patch of", set(change))
        before, after = self.objects[name], dict(copy.deepcopy(self.objects[name]), **change)
        check_event(after)
        check(after["count"] >= before["count"] and after["lastTimestamp"] >= before["lastTimestamp"], before, after)
        self.objects[name] = after
        self.patched += 1
        return self.done(200, after)

    def read(self):
        """By Kubernetes' own client, over TLS and with the token."""
        configuration = kubernetes.client.Configuration(host="https://127.0.0.1:%d" % self.receiver.port)
        configuration.ssl_ca_cert = self.account + "/ca.crt"
        configuration.api_key = {"authorization": "Bearer " + self.token}
        configuration.proxy = None
        with kubernetes.client.ApiClient(configuration) as client:
            return kubernetes.client.CoreV1Api(client).list_namespaced_event("default").items

    def total(self):
        with self.receiver.lock:
            return sum(o["count"] for o in self.objects.values())

    def check_all(self, port, reasons):
        """Every event of the journal is sent; of these reasons, by their events and causes, all are in the objects that are there."""
        def settled():
            check(not self.wrong, *self.wrong)
            entries = self.scene.entries()
            with self.receiver.lock:
                counts = [sum(o["count"] for o in self.objects.values() if o["reason"] == reason) for reason in reasons]
            want = [sum((e["HAWSER_EVENT"], cause or e["HAWSER_CAUSE"]) == (kind, e["HAWSER_CAUSE"]) for e in entries)
                    for kind, cause in reasons.values()]
            return (not self.scene.metric(port, "hawser_kubernetes_waiting") and counts == want
                    and self.scene.metric(port, "hawser_kubernetes_sent_total") == len(entries))
        await_true("the objects have all events", settled)
        check(self.scene.metric(port, "hawser_kubernetes_dropped_total") == 0, self.scene.get(port))


def failover(scene):
    """Objects are made, counted up, made anew after they expired; a replaced token; an answer that is lost; rights that come later."""
    api = Api(scene, Authority(scene.path("ca")))

    def forbid(request):
        return Api.status(403, "Forbidden", 'events is forbidden: User "system:serviceaccount:kube-system:hawser" cannot create')
    api.fault = forbid
    _, port = scene.start_exporter("--kubernetes=" + api.account, env=api.env)
    scene.start_job(port)
    scene.fail_over(port)
    await_true("it is refused", lambda: scene.metric(port, "hawser_kubernetes_failed_total") >= 2)
    check("rbac.yaml" in scene.log("exporter") and "HTTP 403: events is forbidden" in scene.log("exporter"), scene.log("exporter"))
    await_true("all wait", lambda: scene.metric(port, "hawser_kubernetes_waiting") == len(scene.entries()))
    check(api.total() == 0, "an object of who has no right")
    api.fault = None
    api.check_all(port, REASONS)
    objects = api.read()
    for o in objects:
        warning = o.reason in ("HawserFailover", "HawserUnprotected", "HawserPortDown")
        check(o.type == ("Warning" if warning else "Normal"), o.reason, o.type)
        check(datetime.datetime.now(datetime.timezone.utc) - o.last_timestamp < datetime.timedelta(hours=1), o.last_timestamp)
        check("job ha" in o.message, o.message)
    check(any("failed_over" in o.message and "soft0:1" in o.message for o in objects), [o.message for o in objects])
    check(api.created < len(scene.entries()), "each event is an object")

    # The same again is the same objects; the token has been replaced.
    api.token = "token-2"
    scene.write("account/token", api.token)
    patched = api.patched
    scene.fail_over(port)
    api.check_all(port, REASONS)
    check(api.patched > patched, "nothing was counted up")

    # Those that have expired are made anew, with the whole count.
    with api.receiver.lock:
        api.objects.clear()
    created = api.created
    scene.fail_over(port)
    api.check_all(port, PORT_DOWN)
    check(api.created > created, "nothing was made anew")

    # Made, and the answer was lost: it is there once.
    def lose(request):
        if request.command == "POST":
            api.create(request)
            api.fault = None
            return LOST
        return None
    with api.receiver.lock:
        api.objects.clear()
        api.fault = lose
    scene.fail_over(port)
    await_true("an answer is lost", lambda: api.fault is None)
    api.check_all(port, PORT_DOWN)


def impostor(scene):
    """No token for a server that the service account's authority does not know."""
    api = Api(scene, Authority(scene.path("ca")))
    with open(Authority(scene.path("other")).ca, encoding="utf-8") as ca:
        scene.write("account/ca.crt", ca.read())
    process, port = scene.start_exporter("--kubernetes=" + api.account, env=api.env)
    scene.start_job(port)
    scene.fail_over(port)
    await_true("it is refused", lambda: scene.metric(port, "hawser_kubernetes_failed_total") >= 2)
    check(api.receiver.count() == 0, "a request came through")
    check("certificate" in scene.log("exporter"), "the log:", scene.log("exporter"))
    process.terminate()
    check(process.wait() == 0, "it ends with", process.returncode)


def flooded(scene):
    """While the server holds a request, events go into one object; of more objects than there is room for the oldest are dropped."""
    api, release = Api(scene, Authority(scene.path("ca"))), threading.Event()

    def flood(n, jobs):
        held = threading.Event()

        def hold(_):
            held.set()
            api.receiver.lock.release()
            release.wait()
            api.receiver.lock.acquire()
            api.fault = None
        release.clear()
        api.fault, api.created, api.patched = hold, 0, 0
        api.objects.clear()
        process = scene.start("flood", FLOOD, "kubernetes", api.account, str(n), str(jobs), env=api.env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
        await_true("a request is held", held.is_set)
        process.stdin.write("go\n")
        process.stdin.flush()
        lines = [process.stdout.readline()]
        release.set()
        lines.append(process.stdout.readline())
        check(process.wait() == 0 and not api.wrong, "flood ends with", process.returncode, api.wrong)
        return lines
    lines = flood(1000, 1)
    check(lines == ["written, 1000 waiting, 0 dropped\n", "1000 sent, 0 dropped, 0 failed\n"], lines)
    check((api.created, api.patched, api.total()) == (1, 1, 1000), api.created, api.patched, api.total())
    lines = flood(200, 200)
    check(lines == ["written, 128 waiting, 72 dropped\n", "128 sent, 72 dropped, 0 failed\n"], lines)
    jobs = {int(o["message"].rsplit("job", 1)[1]) for o in api.objects.values()}
    check(jobs == {0, *range(73, 200)}, sorted(jobs))


def refusals(scene):
    """One clear line for what a pod lacks."""
    api = Api(scene, Authority(scene.path("ca")))

    def say(**env):
        environment = dict(scene.env, **api.env)
        environment.update(env)
        ended = subprocess.run([scene.exporter, "--once", "--journal", "none", "--dir", scene.path("pages"), "--kubernetes=" + api.account],
                               env=environment, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stderr
    check(say() == (0, ""), say())
    for name, value, word in (("NODE_NAME", "", "spec.nodeName"), ("NODE_NAME", "Node 7", "spec.nodeName"),
                              ("KUBERNETES_SERVICE_HOST", "", "does not run in a pod")):
        status, text = say(**{name: value})
        check(status == 1 and word in text and text.count("\n") == 1, text)
    subprocess.run(["rm", api.account + "/token"], check=True)
    status, text = say()
    check(status == 1 and "automountServiceAccountToken" in text, text)


if __name__ == "__main__":
    run((refusals, flooded, impostor, failover), sys.argv[2:])
