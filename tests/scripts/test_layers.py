#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_layers CC CHECK: what scripts/check-layers refuses and what it lets pass, in small trees of the plugin's folders."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

cc, check = sys.argv[1:]

PEEK = "static inline int ha_peek(const int *at)\n{\n\treturn *at;\n}\n"
CASES = []


def case(function):
    CASES.append(function)
    return function


def judge(files, programs=()):
    """(exit status, output) of check-layers for {path: text}; programs: the .c files of each."""
    with tempfile.TemporaryDirectory() as top:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text)
        os.makedirs(os.path.join(top, "scripts"))
        shutil.copy(check, os.path.join(top, "scripts", "check-layers"))
        build = os.path.join(top, "build")
        os.makedirs(build)
        commands = []
        for path in files:
            if path.endswith(".c"):
                command = "%s -O2 -I%s -c -o %s %s" % (cc, top, path.replace("/", "_") + ".o", os.path.join(top, path))
                subprocess.run(command.split(), check=True, cwd=build)
                commands.append({"directory": build, "command": command, "file": os.path.join(top, path)})
        with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump(commands, file)
        with open(os.path.join(build, "build.ninja"), "w", encoding="utf-8") as file:
            for number, members in enumerate(programs):
                made = [path.replace("/", "_") + ".o" for path in members]
                file.write("build lib%d.a: C_STATIC_LIBRARY_LINKER__lib%d_ %s || other\n" % (number, number, " ".join(made[1:])))
                file.write("build run%d: C_EXECUTABLE_LINKER__run%d_ %s | lib%d.a || other\n" % (number, number, made[0], number))
        run = subprocess.run([sys.executable, "-B", os.path.join(top, "scripts", "check-layers")], capture_output=True, text=True,
                             check=False)
        return run.returncode, run.stdout + run.stderr


def must_refuse(line, *arguments):
    status, output = judge(*arguments)
    assert status == 1 and "check-layers: %s\n" % line in output, output


def must_pass(end, *arguments):
    status, output = judge(*arguments)
    assert status == 0 and output.endswith(end + "\n"), output


@case
def function_of_a_higher_source():
    must_refuse("call upwards: plugin/device/a.c -> plugin/transfer/b.c: ha_work", {
        "plugin/device/a.c": "int ha_work(void);\nint ha_a(void)\n{\n\treturn ha_work();\n}\n",
        "plugin/transfer/b.c": "int ha_work(void)\n{\n\treturn 1;\n}\n",
    })


@case
def inline_function_of_a_higher_header():
    must_refuse("call upwards: plugin/device/a.c -> plugin/transfer/b.h: ha_peek", {
        "plugin/device/a.c": '#include "plugin/transfer/c.h"\nint ha_a(const int *at)\n{\n\treturn ha_peek(at);\n}\n',
        "plugin/transfer/c.h": '#include "b.h"\n',
        "plugin/transfer/b.h": PEEK,
    })


@case
def macro_of_a_higher_header():
    must_refuse("call upwards: plugin/device/a.c -> plugin/transfer/b.h: HA_PEEK", {
        "plugin/device/a.c": '#include "plugin/transfer/b.h"\nint ha_a(const int *at)\n{\n\treturn HA_PEEK(at);\n}\n',
        "plugin/transfer/b.h": "#define HA_PEEK(at) (*(at))\n",
    })


@case
def lower_header_that_calls_a_higher_source():
    must_refuse("call upwards: plugin/device/a.h -> plugin/connect/c.c: ha_work", {
        "plugin/device/a.h": "int ha_work(void);\nstatic inline int ha_a(void)\n{\n\treturn ha_work();\n}\n",
        "plugin/connect/c.c": "int ha_work(void)\n{\n\treturn 1;\n}\n",
        "plugin/nccl/d.c": '#include "plugin/device/a.h"\nint ha_d(void)\n{\n\treturn ha_a();\n}\n',
    })


@case
def header_of_another_product():
    must_refuse("call upwards: agent/a.c -> plugin/device/b.h: ha_peek", {
        "agent/a.c": '#include "plugin/device/b.h"\nint ha_a(const int *at)\n{\n\treturn ha_peek(at);\n}\n',
        "plugin/device/b.h": PEEK,
    })


@case
def types_of_a_higher_header():
    must_refuse("include upwards: plugin/device/a.c includes plugin/transfer/b.h", {
        "plugin/device/a.c": '#include "plugin/transfer/b.h"\nint ha_a(const struct ha_work *w)\n{\n\treturn w->done;\n}\n',
        "plugin/transfer/b.h": "struct ha_work {\n\tint done;\n};\n",
    })


@case
def objects_of_every_floor():
    # A context has each floor's part in it; a type of a call's name, a member, words, a function of its own are no calls.
    must_pass("0 calls upwards, largest cycle 0 files; 0 includes upwards", {
        "plugin/device/a.c": '#include "plugin/ctx.h"\n/* ha_peek() */\nconst char *ha_a(const struct ha_peek *p)\n{\n'
                             '\treturn p->ha_peek ? "ha_peek" : 0;\n}\n',
        "plugin/device/c.c": "static int ha_peek(void)\n{\n\treturn 1;\n}\nint ha_c(void)\n{\n\treturn ha_peek();\n}\n",
        "plugin/ctx.h": '#include "plugin/transfer/b.h"\n',
        "plugin/transfer/b.h": "struct ha_peek {\n\tint ha_peek;\n};\n" + PEEK,
    })


@case
def what_a_connection_has_in_it():
    # What a message touches, by name; the rest of a floor above is pointed to.
    a = {"plugin/device/a.c": '#include "plugin/bundle.h"\nint ha_a(void)\n{\n\treturn 1;\n}\n'}
    must_pass("0 includes upwards", dict(a, **{
        "plugin/bundle.h": '#include "plugin/balance/balance.h"\n',
        "plugin/balance/balance.h": "struct ha_balance {\n\tint weight;\n};\n",
    }))
    for header in "plugin/failover/control.h", "plugin/connect/setup.h", "plugin/balance/policy.h", "plugin/channel/link.h":
        must_refuse("include upwards: plugin/bundle.h includes " + header, dict(a, **{
            "plugin/bundle.h": '#include "%s"\n' % header,
            header: "struct ha_part {\n\tint part;\n};\n",
        }))


@case
def calls_down():
    must_pass("2 call edges, 0 calls upwards, largest cycle 0 files; 0 includes upwards", {
        "plugin/transfer/a.c": '#include "plugin/device/b.h"\nint ha_a(const int *at)\n{\n\treturn ha_peek(at) + ha_more();\n}\n',
        "plugin/device/b.h": "int ha_more(void);\n" + PEEK,
        "plugin/device/b.c": "int ha_more(void)\n{\n\treturn 1;\n}\n",
    })


@case
def cycle_through_a_header():
    must_refuse("cycle of 2 files: plugin/device/a.h plugin/device/b.c", {
        "plugin/device/a.h": "int ha_b(const int *at);\n" + PEEK +
                             "static inline int ha_a(const int *at)\n{\n\treturn ha_b(at);\n}\n",
        "plugin/device/b.c": '#include "plugin/device/a.h"\nint ha_b(const int *at)\n{\n\treturn ha_peek(at);\n}\n',
    })


TWO_OWNERS = {
    "plugin/device/a.c": "int ha_work(void);\nint ha_a(void)\n{\n\treturn ha_work();\n}\n",
    "plugin/device/low.c": "int ha_work(void)\n{\n\treturn 1;\n}\n",
    "plugin/transfer/high.c": "int ha_work(void)\n{\n\treturn 2;\n}\n",
}


@case
def owner_that_is_not_linked_together():
    must_pass("0 calls upwards, largest cycle 0 files; 0 includes upwards", TWO_OWNERS,
              [["plugin/device/a.c", "plugin/device/low.c"], ["plugin/transfer/high.c"]])


@case
def one_of_two_owners_is_higher():
    must_refuse("call upwards: plugin/device/a.c -> plugin/transfer/high.c: ha_work", TWO_OWNERS,
                [["plugin/device/a.c", "plugin/device/low.c"], ["plugin/device/a.c", "plugin/transfer/high.c"]])


def main():
    failed = 0
    for function in CASES:
        try:
            function()
        except AssertionError as error:
            print("%s: %s" % (function.__name__, error))
            failed += 1
    print("%d of %d cases" % (len(CASES) - failed, len(CASES)))
    sys.exit(1 if failed else 0)


main()
