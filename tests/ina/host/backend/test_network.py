#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ha-controller, ha-switch and two ha-backend as daemons, over veth between network namespaces or over memif. As root.

Usage: test_network.py BUILD packet|dpdk|memif
  packet  AF_PACKET; one frame in a hundred lost, repeated or late; the switch and a backend are killed in the middle and start again
  dpdk    the same with DPDK's ports on these interfaces
  memif   sums over DPDK's memif on both ends, with --shared
"""
import os, shutil, signal, socket, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "netns"))
from spaces import Space, folder, ip, popen

BUILD, KIND = sys.argv[1:3]
VETH = KIND != "memif"
SHARED = [] if VETH else ["--shared"]
RANKS = os.path.join(BUILD, "tests/ina/host/backend/backend_ranks")
TOP = folder("hawser-network-")
HOSTS = 2
processes, spaces = {}, {}


def start(name, *words, space=None, env=None):
    log = open(f"{TOP}/{name}.log", "ab")
    processes[name] = (space.popen if space else popen)(*words, stdout=log, stderr=log, env={**os.environ, "HA_NCCL_DEBUG": "2", **(env or {})})


def stop(name, how=signal.SIGTERM):
    p = processes.pop(name)
    p.send_signal(how)
    return p.wait(timeout=800)


def await_socket(path, what, kind):
    """Somebody listens there; what a killed process left there is no sign of activity."""
    until = time.time() + 60
    while time.time() < until:
        with socket.socket(socket.AF_UNIX, kind) as s:
            try:
                s.connect(path)
                return
            except OSError:
                time.sleep(0.02)
    raise SystemExit(f"{what} did not start")


def links_make():
    spaces["switch"] = Space()
    for i in range(HOSTS):
        spaces[i] = Space()
        ip("link", "add", f"a{i}", "netns", spaces[i], "type", "veth", "peer", "name", f"b{i}", "netns", spaces["switch"])
        if KIND == "packet":
            spaces[i].ip("addr", "add", f"10.0.0.{i + 1}/24", "dev", f"a{i}")
        spaces[i].ip("link", "set", f"a{i}", "up")
        spaces["switch"].ip("link", "set", f"b{i}", "up")


def controller_start():
    with open(f"{TOP}/settings", "w") as f:
        f.write("switch leaf address 10.0.0.254 slots 4096 serves 10.0.0.0/24 registers\nregister any\nlease 1 3600 86400\nlate 1\nsilence 2\nlength 256\n")
    start("controller", f"{BUILD}/ha-controller", f"--settings={TOP}/settings", f"--database={TOP}/db", f"--listen=unix:{TOP}/controller", "--metrics=none")
    await_socket(f"{TOP}/controller", "ha-controller", socket.SOCK_STREAM)


def switch_start(*more):
    if VETH:
        ports = [f"--port=net_af_packet{i},iface=b{i}" for i in range(HOSTS)]
    else:
        ports = [f"--port=net_memif{i},role=server,socket={TOP}/memif{i},socket-abstract=no" for i in range(HOSTS)]
    start("switch", f"{BUILD}/ha-switch", "--address=10.0.0.254", "--name=leaf", f"--controller=unix:{TOP}/controller", "--slots=4096", "--memory=64",
          "--idle-us=100", "--metrics=none", *SHARED, *ports, *more, space=spaces.get("switch"))


def backend_start(i):
    where = {"packet": "--net=packet", "dpdk": f"--port=net_af_packet0,iface=a{i}",
             "memif": f"--port=net_memif0,role=client,socket={TOP}/memif{i},socket-abstract=no,mac=02:00:00:00:01:0{i}"}[KIND]
    start(f"backend{i}", f"{BUILD}/ha-backend", f"--bind=10.0.0.{i + 1}", f"--controller=unix:{TOP}/controller", f"--socket={TOP}/ina{i}", "--workers=2",
          "--lease=3", "--memory=64", "--metrics=none", "--log=1", "--idle-us=200", *SHARED, where, space=spaces.get(i))
    await_socket(f"{TOP}/ina{i}", f"ha-backend {i}", socket.SOCK_SEQPACKET)


def ranks(scenario, n=4):
    return popen(RANKS, scenario, str(n), *(f"{TOP}/ina{i}" for i in range(HOSTS)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def expect(condition, what, text=""):
    if not condition:
        raise SystemExit(f"{what}\n{text}")


def sums(what, tries=40):
    """A switch that is just coming up has no group yet: the controller says so, and we ask again."""
    for _ in range(tries):
        p = ranks("sums")
        out, _ = p.communicate(timeout=800)
        if p.returncode == 0:
            print(f"{what}: right")
            return
        if "rig_create" not in out:
            break
        time.sleep(0.25)
    raise SystemExit(f"{what}: {out}")


def running():
    p = ranks("endless")
    line = p.stdout.readline()
    expect(line == "running\n", "endless ranks do not run", line)
    time.sleep(0.3)
    return p


def await_ranks(p, what):
    begun = time.time()
    out, _ = p.communicate(timeout=800)
    expect(p.returncode == 0, f"{what}: the ranks found something wrong", out)
    print(f"{what}: after {time.time() - begun:.1f} s:\n  " + out.strip().replace("\n", "\n  "))
    return out


def veth():
    switch_start("--fault=loss=0.01,duplicate=0.01,reorder=0.01,seed=7")
    for i in range(HOSTS):
        backend_start(i)
    sums("over veth, with faults")

    p = running()
    stop("switch", signal.SIGKILL)
    out = await_ranks(p, "the switch is killed")
    expect(out.count("not one packet from switch 10.0.0.254") + out.count("has ended the group") + out.count("lost its memory") == 4, "all four ranks get the reason", out)
    switch_start()
    sums("the switch is back")

    p = running()
    stop("backend1", signal.SIGKILL)
    out = await_ranks(p, "a backend is killed")
    expect(out.count(": gone") == 2, "its ranks see that it has gone", out)
    expect(out.count("10.0.0.2") + out.count("has ended the group") == 2, "the others are sent who it was", out)
    backend_start(1)
    sums("the backend is back")

    p = running()
    expect(stop("backend1") == 0, "a backend ends with 0")
    out = await_ranks(p, "a backend is stopped")
    expect(out.count("has ended the group") == 2, "the others receive abort at once", out)
    backend_start(1)

    p = running()
    expect(stop("controller") == 0, "the controller ends with 0")
    time.sleep(3.5)
    expect(p.poll() is None, "groups go on while the controller is away")
    controller_start()
    time.sleep(1.5)
    expect(p.poll() is None, "and when it is back")
    p.kill()
    p.communicate()
    sums("a client was killed, the controller is back")


def memif():
    switch_start()
    time.sleep(0.5)
    for i in range(HOSTS):
        backend_start(i)
    sums("over memif")


def main():
    try:
        if VETH:
            links_make()
        controller_start()
        veth() if VETH else memif()
        for name in list(processes):
            expect(stop(name) == 0, f"{name} ends with 0")
    except BaseException:
        for name in sorted(f for f in os.listdir(TOP) if f.endswith(".log")):
            with open(f"{TOP}/{name}", errors="replace") as f:
                sys.stderr.write(f"--- {name}\n" + "".join(f.readlines()[-25:]))
        raise
    finally:
        for p in processes.values():
            p.kill()
            p.wait()
        shutil.rmtree(TOP, ignore_errors=True)


main()
