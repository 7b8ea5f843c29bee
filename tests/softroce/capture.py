#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets on the wire, judged by others: tshark must decode every one as RoCEv2 without a complaint, and the ICRC of
each is computed afresh here with zlib from the captured bytes. Usage: capture.py BUILD_DIR"""
import itertools, os, re, shutil, socket, struct, subprocess, sys, tempfile, time, zlib

BUILD = sys.argv[1]
PORT = 4791
SUBNET = f"127.61.{os.getpid() % 250}.0/24"  # nobody else's packets
MARK_PORT = 4790  # of packets that only say how far dumpcap has come
TCP_PORTS = (20000 + 61 * 40 + (os.getpid() + n) % 40 for n in itertools.count())  # as in foreign.sh: nobody else's
RUNS = [  # program and arguments: together every opcode of the reliable connection
    ["ibv_rc_pingpong", "-c", "-n", "60", "-s", "5000", "-m", "1024", "-g", "0"],
    ["ibv_rc_pingpong", "-c", "-n", "5", "-s", "3", "-m", "256", "-g", "0"],
    ["ib_write_bw", "-n", "10", "-s", "20000"],
    ["ib_read_bw", "-n", "10", "-s", "10000"],
    ["ib_atomic_bw", "-n", "10"],
    ["ib_atomic_bw", "-n", "10", "-A", "CMP_AND_SWAP"],
]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need(what):
    if not shutil.which(what):
        skip(f"{what} is not installed")


def may_capture():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except PermissionError:
        skip("capturing needs CAP_NET_RAW")


def both_run(run, env):
    """Server and client of a program: what they print, and whether they succeed."""
    port = next(TCP_PORTS)
    command = [BUILD + "/softroce-run", *run, "-d", "soft0", "-p", str(port)]
    server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_listen(port, server)
    client = subprocess.run([*command, "127.0.0.1"], env=env, timeout=800, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out, _ = server.communicate(timeout=800)
    return client.stdout + out, not client.returncode and not server.returncode


def traffic(env):
    for run in RUNS:
        # perftest measures the processor's clock first, and gives up with these words on a machine that is busy in that moment
        for _ in range(6):
            out, good = both_run(run, env)
            if good or "Can't produce a report" not in out:
                break
            print("again, perftest could not measure the processor's clock:", run)
        if not good:
            sys.exit(f"{run} failed:\n{out}")


def wait_listen(port, server):
    want = f":{port:04X} "
    for _ in range(1200):
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(table) as f:
                if any(want in line[:22 + 30] and line.split()[3] == "0A" for line in f):
                    return
        if server.poll() is not None:
            return
        time.sleep(0.05)


def await_mark(capture, path, mark):
    """Until dumpcap, which is slow on a busy machine, has written a packet that is sent now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(1200):
            sender.sendto(mark, (SUBNET.replace("0/24", "250"), MARK_PORT))
            time.sleep(0.1)
            if capture.poll() is not None:
                sys.exit(f"dumpcap: {capture.stderr.read()}")
            if os.path.exists(path):
                with open(path, "rb") as f:
                    if mark in f.read():
                        return
    sys.exit(f"dumpcap has not written {mark} in two minutes")


def packets(path):
    """(IP packet) of every record of a pcap file with Ethernet frames."""
    with open(path, "rb") as f:
        head = f.read(24)
        order = "<" if head[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
        while record := f.read(16):
            _, _, length, _ = struct.unpack(order + "IIII", record)
            ip = f.read(length)[14:]
            if not is_mark(ip):
                yield ip


def is_mark(ip):
    udp_at = (ip[0] & 15) * 4
    return struct.unpack(">H", ip[udp_at + 2:udp_at + 4])[0] == MARK_PORT


def icrc_right(ip):
    """IBTA vol. 1, annex A17.3.3, from the bytes as captured: IPv4 only."""
    udp_at = (ip[0] & 15) * 4
    total = struct.unpack(">H", ip[2:4])[0]
    masked = bytearray(ip[:total - 4])
    masked[1] = 0xff                                    # type of service
    masked[8] = 0xff                                    # time to live
    masked[10:12] = b"\xff\xff"                         # header checksum
    masked[udp_at + 6:udp_at + 8] = b"\xff\xff"         # UDP checksum
    masked[udp_at + 8 + 4] = 0xff                       # FECN, BECN, reserved
    return zlib.crc32(b"\xff" * 8 + masked) == struct.unpack("<I", ip[total - 4:total])[0]


# Dissectors that take payloads for protocols they know by guessing; ours is the programs' test data.
GUESSERS = ["rpcordma", "iser", "nvme-rdma", "smb_direct", "lnet"]


def tshark(path, *arguments):
    off = [word for name in GUESSERS for word in ("--disable-protocol", name)]
    run = subprocess.run(["tshark", "-r", path, "-Y", f"!(udp.dstport == {MARK_PORT})", *off, *arguments], check=True, capture_output=True,
                         text=True)
    return run.stdout.splitlines()


def main():
    for program in ("tshark", "dumpcap", "ibv_rc_pingpong", "ib_write_bw"):
        need(program)
    may_capture()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        path = folder + "/roce.pcap"
        env = dict(os.environ, SOFTROCE_DEVICES=SUBNET, SOFTROCE_GSO="0", SOFTROCE_CONTROL=folder)
        capture = subprocess.Popen(["dumpcap", "-q", "-P", "-B", "64", "-i", "lo", "-w", path,
                                    "-f", f"(udp port {PORT} or udp dst port {MARK_PORT}) and net {SUBNET}"],
                                   stderr=subprocess.PIPE, text=True)
        await_mark(capture, path, b"before the traffic")
        traffic(env)
        await_mark(capture, path, b"behind the traffic")
        capture.terminate()
        capture.wait()
        judge(path)


def judge(path):
    captured = list(packets(path))
    wrong = sum(not icrc_right(ip) for ip in captured)
    print(f"{len(captured)} packets, {wrong} with a wrong ICRC")
    if len(captured) < 500 or wrong:
        sys.exit("ICRC: the packets are wrong, or too few were captured")
    # One of them with one bit changed must fail: the check itself works.
    broken = bytearray(captured[0])
    broken[30] ^= 1
    if icrc_right(bytes(broken)):
        sys.exit("the ICRC check accepts a changed packet")
    decoded = tshark(path, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "infiniband.invariant.crc", "-e",
                     "_ws.malformed", "-e", "_ws.expert.message")
    opcodes = {}
    for line in decoded:
        opcode, crc, malformed, expert = (line.split("\t") + ["", "", ""])[:4]
        if not opcode or not crc or malformed or expert:
            sys.exit(f"tshark complains: '{line}'")
        opcodes[int(opcode, 0)] = opcodes.get(int(opcode, 0), 0) + 1
    print("opcodes seen:", " ".join(f"{o:#04x}:{n}" for o, n in sorted(opcodes.items())))
    # SEND first, middle, last, only; WRITE first, middle, last; READ request, response first, middle, last; ACK, atomic
    # ACK, compare-and-swap, fetch-and-add (IBTA vol. 1, table 38).
    expected = {0x00, 0x01, 0x02, 0x04, 0x06, 0x07, 0x08, 0x0c, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14}
    if len(decoded) != len(captured) or expected - set(opcodes):
        sys.exit(f"decoded {len(decoded)} of {len(captured)}; missing opcodes: {sorted(expected - set(opcodes))}")
    layers = tshark(path, "-T", "fields", "-e", "frame.protocols")
    if any(not re.search(r"ip:udp:infiniband", line) for line in layers):
        sys.exit("some packet is not decoded as RoCEv2")


main()
