# SPDX-License-Identifier: BSD-3-Clause
"""Makes the wheel of netccl (PEP 517): files of Python and four of description in a zip; no tool that would have to be fetched."""

import base64
import glob
import hashlib
import os
import re
import runpy
import subprocess
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
WHEEL = "Wheel-Version: 1.0\nGenerator: hawser\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _project():
    """The simple values of pyproject.toml: Python before 3.11 has no reader for it."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return dict(re.findall(r'^([\w-]+) = "(.*)"$', f.read(), flags=re.M))


def _commit():
    """Git's of this checkout, with "+" where it was changed, as base/version.cmake has it; None outside of one."""
    git = ["git", "-C", HERE]
    try:
        answer = subprocess.check_output(git + ["rev-parse", "--show-prefix", "--short", "HEAD"], stderr=subprocess.DEVNULL, universal_newlines=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    prefix, commit = answer.splitlines()
    if prefix != "ina/python/":  # another project's repository that we were unpacked in
        return None
    return commit + ("+" if subprocess.call(git + ["diff", "--quiet", "HEAD", "--"]) else "")


def _metadata(project):
    return ("Metadata-Version: 2.1\nName: %(name)s\nVersion: %(version)s\nSummary: %(description)s\nLicense: BSD-3-Clause\n"
            "Requires-Python: %(requires-python)s\n" % project)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    project["version"] = runpy.run_path(os.path.join(HERE, "netccl", "version.py"))["VERSION"]
    commit = _commit()
    shown = project["version"] + (" (g%s)" % commit if commit else "")
    stem = "%s-%s" % (project["name"], project["version"])
    info = stem + ".dist-info/"
    files = {}
    for path in sorted(glob.glob(os.path.join(HERE, "netccl", "*.py")) + glob.glob(os.path.join(HERE, "netccl", "*.so"))):
        with open(path, "rb") as f:
            files["netccl/" + os.path.basename(path)] = f.read()
    files["netccl/version.py"] = files["netccl/version.py"].replace(b"@HAWSER_VERSION@", shown.encode())
    files[info + "METADATA"] = _metadata(project).encode()
    files[info + "WHEEL"] = WHEEL.encode()
    files[info + "top_level.txt"] = b"netccl\n"
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    name = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []
