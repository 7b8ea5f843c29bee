#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""links.py: every link of a document leads to a file of the tree, and to a heading that it has."""

import os
import sys

import translations


def documents():
    for path, folders, names in os.walk(translations.ROOT):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        for name in names:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(path, name), translations.ROOT)


def main():
    wrong = list(translations.links("README.md", "[a](docs/nowhere.md) [b](docs/operations.md#no-such-heading)"))
    assert len(wrong) == 2, wrong  # the check finds what is wrong
    names = sorted(documents())
    assert len(names) > 50, names
    found = [fault for name in names for fault in translations.links(name, translations.read(name))]
    print("\n".join(found) or "the links of %d documents lead somewhere" % len(names))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
