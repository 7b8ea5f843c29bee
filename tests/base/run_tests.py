#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/run-tests: what runs in turn and beside that, what is run a second time, and what the summary says of it. Usage: run_tests.py SOURCE"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# Fails unless it has run before; it waits until it may go on.
SECOND_TIME = 'set -e; touch begun; while [ ! -e go ]; do sleep 0.05; done; if [ ! -e once ]; then touch once; echo FAIL: once; exit 1; fi'


def write_project(folder, script, label):
    with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
        file.write('add_test(second_time "/bin/sh" "-c" [[%s]])\n' % script)
        file.write('set_tests_properties(second_time PROPERTIES LABELS "%s" WORKING_DIRECTORY "%s")\n' % (label, folder))


def run(source, label, stop_s):
    """Exit status, summary and output of a stage whose one test fails the first time."""
    with tempfile.TemporaryDirectory() as folder:
        write_project(folder, SECOND_TIME, label)
        process = subprocess.Popen([os.path.join(source, "scripts", "run-tests"), folder], stdout=subprocess.PIPE, text=True)
        if stop_s:
            while not os.path.exists(os.path.join(folder, "begun")):
                time.sleep(0.05)
            process.send_signal(signal.SIGSTOP)
            time.sleep(stop_s)
            process.send_signal(signal.SIGCONT)
        open(os.path.join(folder, "go"), "w").close()
        output = process.communicate()[0]
        with open(os.path.join(folder, "check.json")) as file:
            return process.returncode, json.load(file), output


def run_unreadable(source):
    """Exit status and output with an expression of more groups than ctest takes."""
    with tempfile.TemporaryDirectory() as folder:
        write_project(folder, "true", "unit")
        done = subprocess.run([os.path.join(source, "scripts/run-tests"), folder, "--without", "(" * 12 + ")" * 12],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout


# Fails where two run at once; those that run in turn have all ended before the others begin.
ALONE = 'mkdir alone || exit 1; sleep 0.2; rmdir alone; touch done.$0'
AFTER = 'test -e done.1 && test -e done.2'


# As many as ctest takes; names that run-tests adds must not make it one more.
NINE_GROUPS = "^" + "(" * 9 + "left" + ")" * 9


def run_in_turn(source):
    """Exit status, summary and output of two tests that run in turn, and of a third that comes behind them."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
            for name, script in (("after", AFTER), ("1", ALONE), ("2", ALONE), ("left_out", "false")):
                file.write('add_test(%s "/bin/sh" "-c" [[%s]] %s)\n' % (name, script, name))
                file.write('set_tests_properties(%s PROPERTIES WORKING_DIRECTORY "%s")\n' % (name, folder))
            file.write('set_tests_properties(1 2 PROPERTIES RESOURCE_LOCK nccl)\n')
        done = subprocess.run([os.path.join(source, "scripts/run-tests"), folder, "--jobs", "3", "--without", NINE_GROUPS],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        with open(os.path.join(folder, "check.json")) as file:
            return done.returncode, json.load(file), done.stdout


# What runs in turn ends only when it has seen what runs beside it.
SEES = 'while [ ! -e beside ]; do sleep 0.05; done'


def run_beside(source, then):
    """Exit status, summary and output of a test that runs in turn, one beside it that ends with `then`, and a third."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
            for name, script in (("in_turn", SEES), ("beside", "touch beside; " + then), ("third", "true")):
                file.write('add_test(%s "/bin/sh" "-c" [[%s]])\n' % (name, script))
                file.write('set_tests_properties(%s PROPERTIES WORKING_DIRECTORY "%s")\n' % (name, folder))
            file.write('set_tests_properties(in_turn PROPERTIES RESOURCE_LOCK nccl)\n')
            file.write('set_tests_properties(beside PROPERTIES LABELS untimed)\n')
        done = subprocess.run([os.path.join(source, "scripts/run-tests"), folder],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        with open(os.path.join(folder, "check.json")) as file:
            return done.returncode, json.load(file), done.stdout


def list_targets(source):
    """What has to be built where one of two tests is left out: programs of tests/ that nobody runs and archives are not."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w") as file:
            for name, program in (("stays", "stays"), ("left_out", "left_out"), ("also_left_out", "../ha")):
                file.write('add_test([=[%s]=] "%s/tests/%s" "%s/tests/shared")\n' % (name, folder, program, folder))
        with open(os.path.join(folder, "build.ninja"), "w") as file:
            file.write("build all: phony ha tests/all\n"
                       "build tests/all: phony tests/stays tests/left_out tests/shared tests/libkit.a tests/unnamed\n")
        done = subprocess.run([os.path.join(source, "scripts/run-tests"), folder, "--targets", "--without", "left_out"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.stdout


def run_with_others(source):
    """Status, summary and output of a build of four tests, where one build runs three of them and another, by a label, two."""
    with tempfile.TemporaryDirectory() as folder:
        builds = [os.path.join(folder, name) for name in ("here", "one", "other")]
        for build in builds:
            os.mkdir(build)
            with open(os.path.join(build, "CTestTestfile.cmake"), "w") as file:
                for name, label in (("in_both", "unit"), ("in.both", "unit"), ("in_one", "slow"), ("in_none", "unit")):
                    file.write('add_test(%s "/bin/true")\nset_tests_properties(%s PROPERTIES LABELS %s)\n' % (name, name, label))
        done = subprocess.run([os.path.join(source, "scripts/run-tests"), builds[0], "--elsewhere", builds[1], "^none$", "in_none",
                               "--elsewhere", builds[2], "^slow$", "in_none"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        with open(os.path.join(builds[0], "check.json")) as file:
            return done.returncode, json.load(file), done.stdout


def check(what, holds, output):
    if not holds:
        sys.exit("%s does not hold:\n%s" % (what, output))


def main():
    source = sys.argv[1]
    status, summary, output = run(source, "unit", 0)
    if not summary["stops_s"]:  # a machine that has just stood still decides nothing about this one
        check("a test that is not live is not repeated", status == 1 and not summary["repeated"], output)
    status, summary, output = run(source, "live", 0)
    check("a live test is repeated", status == 0 and summary["repeated"]["second_time"]["then"] == "passed", output)
    check("why it was repeated is printed", "run-tests: repeated: second_time, then passed; at first: FAIL: once" in output, output)
    status, summary, output = run(source, "unit", 4)
    check("what fails while the machine stands still is repeated",
          status == 0 and summary["repeated"]["second_time"]["then"] == "passed", output)
    check("the stop is printed", summary["stops_s"] and "run-tests: the machine stood still for " in output, output)
    status, summary, output = run_in_turn(source)
    check("NCCL's jobs run in turn, before the others", status == 0 and summary["ran"] == 3, output)
    status, summary, output = run_beside(source, "true")
    check("untimed tests run beside those in turn", status == 0 and summary["ran"] == 3, output)
    status, summary, output = run_beside(source, "echo the reason; false")
    check("an untimed test's failure is reported", status == 1 and summary["failed"] == {"beside": "the reason"}, output)
    check("why it failed is in its line", "run-tests: failed: beside: the reason\n" in output, output)
    output = list_targets(source)
    check("what only left out tests run is not built", output.split() == ["ha", "tests/shared", "tests/stays", "tests/unnamed"], output)
    status, summary, output = run_with_others(source)
    check("what each of two other builds has does not run here",
          status == 0 and sorted(summary["seconds"]) == ["in_none", "in_one"], output)
    check("how many those are is printed", "run-tests: 2 are left to " in output, output)
    status, output = run_unreadable(source)
    check("an expression of too many groups is refused", status == 1 and "run-tests: 12 groups in an expression" in output, output)


main()
