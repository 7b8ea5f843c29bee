#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests, as Debian's python3-pyverbs carries them, on softroce; held against docs/conformance.md.

Usage: conformance.py BUILD_DIR TABLE        run, and fail when a test does not do what the table says
       conformance.py BUILD_DIR TABLE --table  run, and print the rows of the table as they are now

A test that the table calls `pass` must pass. One that it calls not applicable may be skipped, or end with the error of
a feature that is not there; when it passes, the table is out of date and that is a failure too, unless the reason is a device that some machines have
("needs a ..."). The tests of another
version of rdma-core that the table does not know must not fail.
"""
import collections, glob, os, re, shutil, subprocess, sys, tempfile

INSTALLED = "/usr/share/doc/rdma-core/tests"

# What the suite says when it skips a test -> why that cannot be otherwise here. First match counts.
WHY = [
    (r"^test_(mlx5|efa)", r".", "a vendor's driver interface"),
    (r"^test_cuda", r".", "needs a GPU's driver"),
    (r"^test_rdmacm", r".", "the suite gives both ends the address of one network interface; here each process has its own"),
    (r"^test_odp", r".", "no on-demand paging: nothing is pinned, so there is nothing to fault in"),
    (r"^test_parent_domain", r".", "no parent domains: no doorbells or buffers that a program could own"),
    (r"^test_shared_pd", r".", "import of another process's objects goes through the kernel device"),
    (r".", r"XRCD|XRC", "no XRC"),
    (r".", r"Device memory", "no memory on the NIC"),
    (r".", r"dmabuf", "needs a GPU's render node"),
    (r".", r"Raw Packet|QP type 8", "no raw Ethernet queue pairs"),
    (r"^test_tag_matching", r".", "no tag matching"),
    (r"atomic_write", r".", "ATOMIC WRITE is newer than the rest (IBTA 1.5)"),
]


def find_suite(scratch):
    """The folder of tests: installed, or out of the package when the machine leaves documentation out."""
    where = INSTALLED
    if not os.path.isdir(where):
        subprocess.run(["apt-get", "download", "-qq", "python3-pyverbs"], cwd=scratch, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for package in glob.glob(scratch + "/*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, scratch], check=True)
        where = scratch + INSTALLED
    if not os.path.isdir(where):
        return None
    to = scratch + "/tests"
    shutil.copytree(where, to)
    for packed in glob.glob(to + "/*.gz"):
        subprocess.run(["gunzip", packed], check=True)
    return to


def run_suite(build, tests):
    """{(file, test): (outcome, reason)} and the whole output."""
    env = dict(os.environ, SOFTROCE_DEVICES="127.118.0.0/24,127.118.1.0/24")
    done = subprocess.run([build + "/softroce-run", "/usr/bin/python3", tests + "/run_tests.py", "-v"], env=env,
                          cwd=os.path.dirname(tests), capture_output=True, text=True, timeout=800, check=False)
    out = done.stdout + done.stderr
    found, current = {}, None
    for line in out.splitlines():
        name = re.match(r"^(test_\w+) \(tests\.(test_\w+)\.(\w+)", line)
        current = name or current
        end = re.search(r"\.\.\. (ok|FAIL|ERROR|skipped (.*))$", line)
        if end and current:
            key = (current.group(2), current.group(1))
            worse = found.get(key, ("ok", ""))
            outcome = end.group(1).split()[0]
            # The same name in several classes of a file: the worst counts.
            if worse[0] == "ok" or outcome in ("FAIL", "ERROR"):
                found[key] = (outcome, end.group(2) or "")
            current = None
    return found, out


def why(key, reason):
    for where, text, said in WHY:
        if (re.search(where, key[0]) or re.search(where, key[1])) and re.search(text, reason or "error"):
            return said
    return reason


def read_table(path):
    table = {}
    for line in open(path, encoding="utf-8"):
        row = re.match(r"^\| `(test_\w+)` \| (pass|not applicable[^|]*) \| (.*) \|$", line.strip())
        if row:
            for name in re.findall(r"`(test_\w+)`", row.group(3)):
                table[row.group(1), name] = row.group(2)
    return table


def print_table(found):
    rows = collections.OrderedDict()
    for key, (outcome, reason) in sorted(found.items()):
        verdict = "pass" if outcome == "ok" else "not applicable: " + why(key, reason)
        rows.setdefault((key[0], verdict), []).append(key[1])
    for (file, verdict), names in rows.items():
        print(f"| `{file}` | {verdict} | {', '.join(f'`{n}`' for n in names)} |")


def main():
    build, table_path = os.path.abspath(sys.argv[1]), sys.argv[2]
    if subprocess.run(["/usr/bin/python3", "-c", "import pyverbs.device"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        print("skipped: python3-pyverbs is not installed")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        tests = find_suite(scratch)
        if not tests:
            print(f"skipped: no tests in {INSTALLED}, and the package cannot be downloaded")
            return 77
        found, out = run_suite(build, tests)
    if len(sys.argv) > 3:
        print_table(found)
        return 0
    table = read_table(table_path)
    wrong = []
    for key, (outcome, reason) in sorted(found.items()):
        said = table.get(key)
        if said == "pass" and outcome != "ok":
            wrong.append(f"{key[0]}.{key[1]}: {outcome} {reason}, and the table says pass")
        elif said is None and outcome in ("FAIL", "ERROR"):
            wrong.append(f"{key[0]}.{key[1]}: {outcome}; the table does not know it")
        elif said and said != "pass" and "needs a" not in said and outcome == "ok":
            wrong.append(f"{key[0]}.{key[1]} passes; the table says {said}")
    passed = sum(outcome == "ok" for outcome, _ in found.values())
    print(f"{len(found)} tests: {passed} pass, {len(found) - passed} not applicable")
    if passed < 70:
        wrong.append("far too few tests pass")
    if wrong:
        print("\n".join(wrong), "--- the suite said", out[-6000:], sep="\n")
    return bool(wrong)


sys.exit(main())
