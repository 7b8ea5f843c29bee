#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ha-controller against an independent client: one that knows NetCCL's messages only, one with ours, one with text, and
mutual TLS with certificates made here. Arguments: ha-controller, the folder of netccl.proto."""
import concurrent.futures
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import rig
from rig import Rig, grpc, ip, refused

PROGRAM, PROTO = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
Code = grpc.StatusCode

SETTINGS = """
switch leaf address 10.0.0.254 slots 4096 serves 10.0.0.0/24
switch spine address 10.255.0.254 slots 8192 serves 10.0.0.0/8   # further away
switch soft address 172.16.0.254 slots 1024 serves 172.16.0.0/16 registers
register any
quota * groups 3 slots 65536
late 1
silence 30
"""

OURS = len(sys.argv) > 3
folder = tempfile.TemporaryDirectory(prefix="hawser-proto-")
if OURS:  # the same package as the original's, hence a process of its own
    new, new_grpc = rig.compile_proto(folder.name, PROTO + "/netccl.proto")
else:
    old, old_grpc = rig.compile_proto(folder.name, HERE + "/original.proto")
    text, text_grpc = rig.compile_proto(folder.name, HERE + "/textual.proto")


def channel(r):
    return grpc.insecure_channel("127.0.0.1:%d" % r.port, options=rig.OPTIONS)


def netccl_client(r):
    """As NetCCL's front end does it: addresses as integers in the order of the ranks; all groups destroyed at the end."""
    stub = old_grpc.INCStub(channel(r))
    request = old.CreateGroupRequest()
    for address in ("10.0.0.3", "10.0.0.1", "10.0.0.2"):
        request.Member.append(old.MemberInfo(IP=ip(address)))
    group = stub.CreateGroup(request, timeout=300)
    assert 0 < group.GroupID < 256 and group.AggLen == 1024 and group.AggAddr % 1024 == 0, group
    assert [m.IP for m in group.Member] == [ip("10.0.0.254")] * 3
    stub.DestroyGroup(old.DestroyGroupRequest(GroupID=group.GroupID), timeout=300)
    stub.DestroyGroup(old.DestroyGroupRequest(GroupID=group.GroupID), timeout=300)
    stub.DestroyGroup(old.DestroyGroupRequest(GroupID=0), timeout=300)
    refused(stub.Init, old.Nothing(), Code.PERMISSION_DENIED, "no client may do that")
    refused(stub.Stop, old.Nothing(), Code.PERMISSION_DENIED, "no client may do that")
    # nobody serves them: group 0, which means: do without
    far = stub.CreateGroup(old.CreateGroupRequest(Member=[old.MemberInfo(IP=ip("11.0.0.1")), old.MemberInfo(IP=1 << 24)]),
                           timeout=300)
    assert far.GroupID == 0 and not far.Member


def text_client(r):
    stub = text_grpc.ControllerStub(channel(r))

    def members(*addresses):
        return text.CreateTextRequest(Member=[text.MemberText(IP=a) for a in addresses])

    group = stub.CreateGroup(members("10.0.0.1", "10.1.0.1"), timeout=300)
    assert group.GroupID and [m.IP for m in group.Member] == ["10.255.0.254"] * 2, group
    for wrong in "10.0.0.300", "10.0.0", "fe80::1", "", "host", "10.0.0.1 ", "0x0a000001", "10.0.0.1:5", "\x1b[2J":
        refused(stub.CreateGroup, members("10.0.0.1", wrong), Code.INVALID_ARGUMENT, "of rank 1 is no IPv4 address")
    old_grpc.INCStub(channel(r)).DestroyGroup(old.DestroyGroupRequest(GroupID=group.GroupID), timeout=300)


def bad_requests(r, stub):
    def members(*numbers):
        return new.CreateGroupRequest(Member=[new.MemberInfo(IP=n) for n in numbers])

    a = ip("10.0.0.1")
    invalid = Code.INVALID_ARGUMENT
    refused(stub.CreateGroup, members(), invalid, "2 to 32 members, not 0")
    refused(stub.CreateGroup, members(a), invalid, "2 to 32 members, not 1")
    refused(stub.CreateGroup, members(*range(a, a + 33)), invalid, "2 to 32 members, not 33")
    refused(stub.CreateGroup, members(a, a + 1, a), invalid, "ranks 0 and 2 have the same address 10.0.0.1")
    refused(stub.CreateGroup, members(a, 0), invalid, "of rank 1 is no address of a host")
    refused(stub.CreateGroup, members(a, ip("224.0.0.1")), invalid, "of rank 1 is no address of a host")
    refused(stub.CreateGroup, new.CreateGroupRequest(RequestID=b"x" * 33), invalid, "")
    refused(stub.CreateGroup, new.CreateGroupRequest(Name="x" * 70000), Code.RESOURCE_EXHAUSTED, "")
    refused(stub.CreateGroup, new.CreateGroupRequest(Member=[new.MemberInfo(IP=n) for n in (a, a + 1)], Name="a\nb"), invalid,
            "not printable")
    raw = channel(r)
    same = lambda b: b
    for junk in b"\xff", b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\x0d" + struct.pack("<I", 3), os.urandom(300):
        for method in "CreateGroup", "DestroyGroup", "Heartbeat", "List", "SwitchHeartbeat":
            call = raw.unary_unary("/inc.INC/" + method, request_serializer=same, response_deserializer=same)
            try:
                call(junk, timeout=300)
            except grpc.RpcError as error:
                assert error.code() in (invalid, Code.PERMISSION_DENIED), (method, junk, error)
    for method in "/inc.INC/Nothing", "/", "/CreateGroups", "/" + "x" * 500:
        refused(raw.unary_unary(method, request_serializer=same, response_deserializer=same), b"", Code.UNIMPLEMENTED,
                "no such method")


def leases_and_quotas(r, stub):
    def make(n, **more):
        a = ip("10.0.%d.1" % n)
        return stub.CreateGroup(new.CreateGroupRequest(Member=[new.MemberInfo(IP=a), new.MemberInfo(IP=a + 1)], **more), timeout=300)

    deadline = time.time() + 60  # what went before may be in quarantine still
    while stub.List(new.ListRequest(), timeout=300).Group and time.time() < deadline:
        time.sleep(0.1)
    first = make(0, LeaseMs=60000, RequestID=b"first", Name="job 7")
    assert first.GroupID and first.Switch == "leaf" and first.LeaseMs == 60000 and first.Key, first
    assert make(0, LeaseMs=60000, RequestID=b"first") == first
    others = [make(n, LeaseMs=60000, Length=256) for n in (1, 2)]
    assert [o.Switch for o in others] == ["spine", "spine"]
    full = make(3)
    assert full.GroupID == 0 and full.Reason == new.QUOTA and "127.0.0.1 has 3 groups" in full.Message, full
    listed = stub.List(new.ListRequest(), timeout=300)
    assert [s.Name for s in listed.Switch] == ["leaf", "spine", "soft"] and [s.Up for s in listed.Switch] == [True, True, False]
    assert [g.Serial for g in listed.Group] == sorted(g.Serial for g in listed.Group)
    mine = listed.Group[0]
    assert (mine.GroupID, mine.Name, mine.Tenant, mine.State) == (first.GroupID, "job 7", "127.0.0.1", new.LIVE), mine
    heartbeat = stub.Heartbeat(new.HeartbeatRequest(GroupID=first.GroupID, Key=first.Key, Rank=1), timeout=300)
    assert (heartbeat.State, heartbeat.Epoch, heartbeat.Silent, heartbeat.Message) == (new.LIVE, first.Epoch, 0, ""), heartbeat
    heartbeat = stub.Heartbeat(new.HeartbeatRequest(GroupID=first.GroupID, Key=first.Key ^ 1), timeout=300)
    assert (heartbeat.State, heartbeat.Epoch) == (new.UNKNOWN, 0) and "the group of this key is over" in heartbeat.Message, heartbeat
    none = stub.DestroyGroup(new.DestroyGroupRequest(GroupID=first.GroupID, Key=first.Key ^ 1), timeout=300)
    assert none.Message == "there is no group %d of this key" % first.GroupID, none
    for group in first, *others:
        assert not stub.DestroyGroup(new.DestroyGroupRequest(GroupID=group.GroupID, Key=group.Key), timeout=300).Message
    while stub.List(new.ListRequest(), timeout=300).Group and time.time() < deadline:
        time.sleep(0.1)
    # left alone, a group ends, and then is forgotten; nothing here depends on how fast we are
    short = make(0, LeaseMs=1000)
    serial, states, deadline = mine.Serial + 3, [], time.time() + 60
    while time.time() < deadline and (not states or states[-1] != new.UNKNOWN):
        state = {g.Serial: g.State for g in stub.List(new.ListRequest(), timeout=300).Group}.get(serial, new.UNKNOWN)
        states += [state] if not states or state != states[-1] else []
        time.sleep(0.05)
    assert states in ([new.LIVE, new.CLOSED, new.UNKNOWN], [new.CLOSED, new.UNKNOWN], [new.UNKNOWN]), states
    gone = stub.Heartbeat(new.HeartbeatRequest(GroupID=short.GroupID, Key=short.Key), timeout=300)
    assert gone.State == new.UNKNOWN and gone.Message == "there is no group %d" % short.GroupID, gone


def a_switch(r, stub):
    def heartbeat(**more):
        request = dict(Name="soft", Incarnation=5)
        request.update(more)
        return stub.SwitchHeartbeat(new.SwitchHeartbeatRequest(**request), timeout=300)

    def make():
        a = ip("172.16.0.1")
        return stub.CreateGroup(new.CreateGroupRequest(Member=[new.MemberInfo(IP=a), new.MemberInfo(IP=a + 1)], Length=64,
                                                       LeaseMs=600000), timeout=300)

    away = make()
    assert away.GroupID == 0 and away.Reason == new.AWAY and away.Message == "switch soft does not answer", away
    table = heartbeat()
    assert table.Changed and not table.Group and table.SilenceMs == 30000
    assert not heartbeat(Version=table.Version).Changed
    # it waits for its table while a group is made
    answer = []
    waiter = threading.Thread(target=lambda: answer.append(heartbeat(Version=table.Version, WaitMs=10000)))
    waiter.start()
    group = None
    for _ in range(100):
        group = make()
        if group.GroupID:
            break
    waiter.join(60)
    assert group.GroupID and answer[0].Changed, answer
    [entry] = answer[0].Group
    assert (entry.GroupID, entry.AggAddr, entry.AggLen, entry.Epoch) == (group.GroupID, group.AggAddr, 64, group.Epoch)
    assert [m.IP for m in entry.Member] == [ip("172.16.0.1"), ip("172.16.0.2")]
    # it has lost its memory: another epoch, for the switch and for the members
    again = heartbeat(Version=answer[0].Version, Incarnation=6)
    assert again.Changed and again.Group[0].Epoch == group.Epoch + 1
    assert stub.Heartbeat(new.HeartbeatRequest(GroupID=group.GroupID, Key=group.Key), timeout=300).Epoch == group.Epoch + 1
    stub.DestroyGroup(new.DestroyGroupRequest(GroupID=group.GroupID, Key=group.Key), timeout=300)
    assert not heartbeat(Incarnation=6).Group
    # unauthenticated peers may announce themselves here ("register any"), sound ones
    refused(stub.SwitchHeartbeat, new.SwitchHeartbeatRequest(Name="x y", Incarnation=1), Code.INVALID_ARGUMENT, "name")
    refused(stub.SwitchHeartbeat, new.SwitchHeartbeatRequest(Name="new", Incarnation=1), Code.INVALID_ARGUMENT, "16 to 65536")
    refused(stub.SwitchHeartbeat, new.SwitchHeartbeatRequest(Name="new", Incarnation=1, IP=1, Slots=64, Serves=["10.0.0.1/8"]),
            Code.INVALID_ARGUMENT, "prefix")
    heartbeat(Name="new", IP=ip("10.9.9.9"), Slots=64, Serves=["192.168.0.0/16"])
    # the same machine under another name would give its aggregators twice
    for other, address in ("leaf", "10.0.0.254"), ("soft", "172.16.0.254"), ("new", "10.9.9.9"):
        refused(stub.SwitchHeartbeat, new.SwitchHeartbeatRequest(Name="twin", Incarnation=1, IP=ip(address), Slots=64,
                                                                 Serves=["192.168.0.0/16"]),
                Code.INVALID_ARGUMENT, "switch %s has this address" % other)
    assert "new" in [s.Name for s in stub.List(new.ListRequest(), timeout=300).Switch]


def metrics(r):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = opener.open("http://127.0.0.1:%d/metrics" % r.metrics_port, timeout=300).read().decode()
    assert page.endswith("# EOF\n")
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert values['hawser_controller_switch_slots{switch="leaf"}'] == "4096"
    assert int(values["hawser_controller_created_total"]) >= 4 and int(values["hawser_controller_invalid_total"]) >= 10
    assert values["hawser_controller_refused_quota_total"] == "1" and values["hawser_controller_switch_restarts_total"] == "1"


def many_at_once(r, stub):
    """More calls than a host may have in progress: some are refused in words, the others answered, and all is well after."""
    request = new.SwitchHeartbeatRequest(Name="soft", Incarnation=6, WaitMs=5000)
    request.Version = stub.SwitchHeartbeat(request, timeout=300).Version
    calls = [stub.SwitchHeartbeat.future(request, timeout=300) for _ in range(60)]
    good = 0
    for c in calls:
        try:
            c.result()
            good += 1
        except grpc.RpcError as error:
            assert error.code() == Code.RESOURCE_EXHAUSTED and "too many calls" in error.details(), error
    assert 16 <= good < 60, good
    assert stub.List(new.ListRequest(), timeout=300).Switch
    for c in [stub.SwitchHeartbeat.future(request, timeout=300) for _ in range(10)]:
        c.cancel()  # clients that go away take nothing with them
    assert stub.List(new.ListRequest(), timeout=300).Switch


def hostile_bytes(r, stub):
    """What is no HTTP/2, or begins as such and goes no further, holds nobody up."""
    open_ones = []
    for junk in b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", os.urandom(5000), b"\x16\x03\x01" + b"x" * 200:
        for _ in range(20):
            s = socket.create_connection(("127.0.0.1", r.port))
            try:
                s.sendall(junk)
            except OSError:
                pass
            open_ones.append(s)
    assert stub.List(new.ListRequest(), timeout=300).Switch
    for s in open_ones:
        s.close()


class Stuck:
    """A call whose request never comes."""

    def __init__(self, r):
        self.go_on = threading.Event()
        call = channel(r).stream_unary("/inc.INC/List", request_serializer=lambda b: b, response_deserializer=lambda b: b)
        self.future = call.future(self.nothing(), timeout=600)

    def nothing(self):
        self.go_on.wait(120)
        yield from ()

    def check(self):
        try:
            self.future.result()
            raise AssertionError("a call without a request was answered")
        except grpc.RpcError as error:
            assert error.code() in (Code.CANCELLED, Code.DEADLINE_EXCEEDED), error
        self.go_on.set()


def certificates(top):
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=top)

    def authority(name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem")

    def signed(by, file, name, more=""):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", name, "-keyout",
                file + ".key", "-out", file + ".csr")
        with open(top + "/ext", "w") as ext:
            ext.write("basicConstraints=CA:FALSE\n" + more)
        openssl("x509", "-req", "-in", file + ".csr", "-CA", by + ".pem", "-CAkey", by + ".key", "-CAcreateserial", "-days", "2",
                "-extfile", "ext", "-out", file + ".pem")

    authority("ca")
    authority("foreign")
    signed("ca", "server", "/CN=controller", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    signed("ca", "alice", "/CN=alice")
    signed("ca", "bob", "/CN=bob")
    signed("ca", "root", "/CN=root")
    signed("ca", "nameless", "/O=nobody")
    signed("ca", "fake", "/CN=local")
    signed("foreign", "mallory", "/CN=alice")


def mutual_tls(top):
    certificates(top)
    settings = "switch s address 10.0.0.254 slots 4096 serves 10.0.0.0/8\nadmin root\nregister bob\nquota alice groups 1 slots 4096\n"

    def read(name):
        with open(top + "/" + name, "rb") as file:
            return file.read()

    def stub(name, port):
        creds = grpc.ssl_channel_credentials(read("ca.pem"), read(name + ".key"), read(name + ".pem")) if name else \
            grpc.ssl_channel_credentials(read("ca.pem"))
        return new_grpc.INCStub(grpc.secure_channel("localhost:%d" % port, creds, options=rig.OPTIONS))

    def make(who, n):
        a = ip("10.0.%d.1" % n)
        return who.CreateGroup(new.CreateGroupRequest(Member=[new.MemberInfo(IP=a), new.MemberInfo(IP=a + 1)]), timeout=300)

    with Rig(PROGRAM, settings, "--ca=" + top + "/ca.pem", "--cert=" + top + "/server.pem", "--key=" + top + "/server.key",
             listen=("127.0.0.1:0", "unix:" + top + "/socket")) as r:
        alice, bob, root = (stub(n, r.port) for n in ("alice", "bob", "root"))
        group = make(alice, 1)
        assert group.GroupID
        assert make(alice, 2).Reason == new.QUOTA
        assert make(bob, 3).GroupID
        refused(bob.DestroyGroup, new.DestroyGroupRequest(GroupID=group.GroupID), Code.PERMISSION_DENIED, "is not yours (bob)")
        refused(bob.Heartbeat, new.HeartbeatRequest(GroupID=group.GroupID), Code.PERMISSION_DENIED, "is not yours (bob)")
        assert {g.Tenant for g in bob.List(new.ListRequest(), timeout=300).Group} == {"alice", "bob"}
        refused(alice.SwitchHeartbeat, new.SwitchHeartbeatRequest(Name="t", Incarnation=1, IP=1, Slots=64, Serves=["0.0.0.0/0"]),
                Code.PERMISSION_DENIED, "alice may not send a switch's heartbeat")
        bob.SwitchHeartbeat(new.SwitchHeartbeatRequest(Name="t", Incarnation=1, IP=1, Slots=64, Serves=["11.0.0.0/8"]), timeout=300)
        assert not root.DestroyGroup(new.DestroyGroupRequest(GroupID=group.GroupID), timeout=300).Message
        # unauthenticated peers: without a certificate, with another authority's, with a name that means something else, without TLS
        for who in None, "mallory":
            refused(stub(who, r.port).List, new.ListRequest(), Code.UNAVAILABLE, "")
        for who in "nameless", "fake":
            refused(stub(who, r.port).List, new.ListRequest(), Code.PERMISSION_DENIED, "common name")
        plain = new_grpc.INCStub(channel(r))
        refused(plain.List, new.ListRequest(), Code.UNAVAILABLE, "")
        assert make(bob, 4).GroupID
        # the local socket needs no certificate, and only the daemon's user and root get there
        local = new_grpc.INCStub(grpc.insecure_channel("unix:" + top + "/socket", options=rig.OPTIONS))
        group = make(root, 5)
        assert group.GroupID and {g.Tenant for g in local.List(new.ListRequest(), timeout=300).Group} >= {"bob", "root"}
        assert not local.DestroyGroup(new.DestroyGroupRequest(GroupID=group.GroupID), timeout=300).Message
        assert stat.S_IMODE(os.stat(top + "/socket").st_mode) == 0o700


def a_controller_that_errs():
    """Our client does not believe what cannot be."""
    class Wrong(new_grpc.INCServicer):
        def CreateGroup(self, request, context):
            return self.answer

    wrong = Wrong()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    new_grpc.add_INCServicer_to_server(wrong, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    ina = [os.path.dirname(PROGRAM) + "/ha-ina", "create", "10.0.0.1,10.0.0.2", "--controller=127.0.0.1:%d" % port,
           "--timeout=60000"]
    sound = dict(GroupID=1, AggAddr=0, AggLen=16, Member=[new.MemberInfo(IP=1)])
    for wrongly, code in (dict(), 0), (dict(AggAddr=65520), 0), (dict(AggAddr=65536), 1), (dict(AggAddr=65528), 1), \
            (dict(AggAddr=2**32 - 16), 1), (dict(AggAddr=8), 1), (dict(AggLen=24), 1), (dict(AggLen=65536), 1), \
            (dict(GroupID=256), 1), (dict(Member=[]), 1):
        wrong.answer = new.CreateGroupResponse(**{**sound, **wrongly})
        done = subprocess.run(ina, check=False, capture_output=True, timeout=600)
        assert done.returncode == code and (not code or b"it gave a group that cannot be" in done.stderr), (wrongly, done)
    server.stop(None)


def main():
    with Rig(PROGRAM, SETTINGS) as r:
        netccl_client(r)
        text_client(r)
    code = subprocess.run([sys.executable, __file__, PROGRAM, PROTO, "ours"], check=False).returncode
    assert code == 0, code


def ours():
    with Rig(PROGRAM, SETTINGS) as r:
        stub = new_grpc.INCStub(channel(r))
        stuck = Stuck(r)
        bad_requests(r, stub)
        hostile_bytes(r, stub)
        leases_and_quotas(r, stub)
        a_switch(r, stub)
        metrics(r)
        stuck.check()
        assert r.stop() == 0
    with Rig(PROGRAM, SETTINGS, "--calls-per-host=16") as r:
        many_at_once(r, new_grpc.INCStub(channel(r)))
        assert r.stop() == 0
    with tempfile.TemporaryDirectory(prefix="hawser-tls-") as top:
        mutual_tls(top)
    a_controller_that_errs()


(ours if OURS else main)()
