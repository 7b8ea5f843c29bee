#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/check-words finds private words in names and in prose, and no others."""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "scripts", "check-words")

# path, text, names that are found
NAMES = [
    ("a.c", "int talk_ns, HA_TALKS, told;\n", ["talk_ns", "HA_TALKS", "told"]),
    ("a.c", "struct ha_trouble *troubled; const char *s = \"trouble\"; /* trouble */\n", ["ha_trouble", "troubled"]),
    ("a.c", "struct ha_beat beat; struct ha_heartbeat heartbeat;\n", ["ha_beat", "beat"]),
    ("a.c", "next = page->header.beat + MPIB_HINT_BEAT_MS;\n", []),
    ("include/mpib_agent_iface.h", "uint32_t beat;\n", []),
    ("softroce/cm/command.c", "path->packet_life_time = 14;\n", []),
    ("plugin/a.c", "path->packet_life_time = 14;\n", ["packet_life_time"]),
    ("a.h", "struct ha_gpu_mailbox *mailbox; /* the mail of `mail` */ char *s = \"mail\";\n", []),
    ("a.h", "struct ha_gpu_mail *next_mail;\n", ["ha_gpu_mail", "next_mail"]),
    ("a.h", "void retold(int detail, int hearth, int training, int letter, int word);\n", []),
    ("a.py", "class LastTold:\n    isTold = f\"{told} told\" + \"told\"  # told\n", ["LastTold", "isTold", "told"]),
    ("a.py", "import x\n\"\"\"What is told\nand heard.\"\"\"\nx.teller = 1\n", ["teller"]),
    ("tool", "#!/usr/bin/python3\nknock = 1\n", ["knock"]),
    ("a.sh", "heard() { echo \"heard $heard_of\" 'heard'; } # heard\n", ["heard", "heard_of"]),
    ("CMakeLists.txt", "add_tests(deaf_after_the_end dark) # deaf\n", ["deaf_after_the_end", "dark"]),
    ("a.md", "`told` told\n", []),
    ("a.pml", "#define HEARS_KEYS(r)\n", ["HEARS_KEYS"]),
]

# path, text, words that are found
PROSE = [
    ("a.c", "/* its life, over a `mail` */ int x; char *s = \"no patience here\";\n", ["life", "patience"]),
    ("a.c", "int a; /* what is told in a word */\n", []),
    ("tool", "#!/usr/bin/python3\nx = 1  # a debt\n", ["debt"]),
    ("a.md", "A stranger\n\n    in a debt\n\nand `doom`.\n", ["stranger"]),
]


def load():
    loader = importlib.machinery.SourceFileLoader("check_words_script", SCRIPT)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main():
    sys.dont_write_bytecode = True
    script = load()
    wrong = 0
    for path, text, expected in NAMES:
        found = [name for _, name, _, _ in script.names(path, text)]
        if found != expected:
            print("%s: %r: the names %s instead of %s" % (path, text, found, expected))
            wrong += 1
    for path, text, expected in PROSE:
        found = [m.group(0) for m in script.WORD.finditer(script.prose(path, text))]
        if found != expected:
            print("%s: %r: the words %s instead of %s" % (path, text, found, expected))
            wrong += 1
    for _, foreign, reason in script.FOREIGN:
        if not reason:
            print("%s has no reason" % foreign)
            wrong += 1
    print("check_words: %d texts, %d wrong" % (len(NAMES) + len(PROSE), wrong))
    return 1 if wrong else 0


sys.exit(main())
