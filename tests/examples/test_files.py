#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_files.py ROOT: the files of examples/ that nothing here can run: every script is read by its shell, every manifest is
compared with the types of Kubernetes' API; images, mounts and selectors fit together; the Dockerfile copies what there is."""

import os
import re
import subprocess
import sys

try:
    import yaml
    from kubernetes import client
except ImportError as missing:
    print("skipped: %s: scripts/install-deps test" % missing)
    sys.exit(77)

ROOT = sys.argv[1]
EXAMPLES = os.path.join(ROOT, "examples")


def files(*endings):
    for path, _, names in os.walk(EXAMPLES):
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.join(path, name)


def check_scripts():
    count = 0
    for path in files(".sh", ".sbatch", "verdict"):
        with open(path, encoding="utf-8") as f:
            shell = f.readline().strip().rsplit("/", 1)[1].replace("env ", "")
        subprocess.run([shell, "-n", path], check=True)
        assert os.access(path, os.X_OK), path + " is not executable"
        count += 1
    assert count >= 7, count


def check_pod(where, pod):
    volumes = {v["name"] for v in pod["volumes"]}
    containers = pod["containers"] + pod.get("initContainers", [])
    names = [c["name"] for c in containers]
    assert len(set(names)) == len(names), where
    for c in containers:
        assert c["image"] and ":" in c["image"], where + ": an image without a tag"
        for mount in c.get("volumeMounts", []):
            assert mount["name"] in volumes, "%s: no volume %s" % (where, mount["name"])
            assert mount["mountPath"].startswith("/"), where


def check_object(where, data, kind):
    """Against the types of Kubernetes' own API, as its Python client has them: every field exists, has the type, none is missing."""
    base = re.fullmatch(r"(list|dict)[\[(](?:str, )?(.+)[\])]", kind)
    if base:
        container, kind = base.groups()
        assert isinstance(data, list if container == "list" else dict), "%s is no %s" % (where, container)
        for key, item in enumerate(data) if container == "list" else data.items():
            check_object("%s[%s]" % (where, key), item, kind)
    elif kind == "str" and re.search(r"\.(limits|requests)\[", where):  # a Quantity, which may be written as a number
        assert isinstance(data, (int, str)), "%s is no quantity" % where
    elif kind in ("str", "int", "bool"):
        assert type(data).__name__ == kind, "%s is no %s" % (where, kind)
    elif kind == "object":  # an IntOrString
        assert isinstance(data, (int, str)), "%s is neither a number nor a string" % where
    else:
        model = getattr(client, kind)
        names = {outside: inside for inside, outside in model.attribute_map.items()}
        assert isinstance(data, dict), "%s is no %s" % (where, kind)
        for field, item in data.items():
            assert field in names, "%s: a %s has no field %s" % (where, kind, field)
            check_object("%s.%s" % (where, field), item, model.openapi_types[names[field]])
        try:
            model(**{names[field]: item for field, item in data.items()})
        except ValueError as why:
            raise AssertionError("%s: %s" % (where, why)) from why


def check_schema(where, document):
    check_object(where, document, "V1" + document["kind"])


def check_checker():
    """It refuses what an API server would."""
    def pod(**changed):
        return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b:1", **changed}]}}
    check_schema("a pod", pod())
    for wrong in ({"imagee": "b"}, {"name": None}, {"command": "ha doctor"}, {"env": [{"value": "no name"}]},
                  {"ports": [{"containerPort": "9845"}]}, {"securityContext": {"capabilities": ["IPC_LOCK"]}}):
        try:
            check_schema("a pod", pod(**wrong))
        except AssertionError:
            continue
        raise AssertionError("not refused: %s" % wrong)


RBAC = "rbac.authorization.k8s.io/v1"
VERSIONS = {"DaemonSet": "apps/v1", "Job": "batch/v1", "Role": RBAC, "RoleBinding": RBAC}


def check_manifests():
    kinds, maps, wanted = set(), set(), set()
    for path in files(".yaml"):
        with open(path, encoding="utf-8") as f:
            for document in yaml.safe_load_all(f):
                where = "%s: %s" % (os.path.relpath(path, ROOT), document["kind"])
                kinds.add(document["kind"])
                check_schema(where, document)
                assert document["apiVersion"] == VERSIONS.get(document["kind"], "v1"), where
                assert re.fullmatch(r"[a-z0-9-]+", document["metadata"]["name"]), where
                if document["kind"] == "ConfigMap":
                    maps.add(document["metadata"]["name"])
                    assert all(isinstance(v, str) for v in document["data"].values()), where
                if document["kind"] in ("DaemonSet", "Job"):
                    template = document["spec"]["template"]
                    check_pod(where, template["spec"])
                    for c in template["spec"]["containers"] + template["spec"].get("initContainers", []):
                        wanted.update(e["configMapRef"]["name"] for e in c.get("envFrom", []))
                if document["kind"] == "DaemonSet":
                    labels = document["spec"]["template"]["metadata"]["labels"].items()
                    assert set(document["spec"]["selector"]["matchLabels"].items()) <= set(labels), where
    assert kinds == {"ConfigMap", "DaemonSet", "Job", "Role", "RoleBinding", "Service", "ServiceAccount"}, kinds
    assert wanted <= maps, "no ConfigMap %s" % (wanted - maps)


def check_rights():
    """The DaemonSet's account is bound to a role that may do what --kubernetes does: events of nodes are in the namespace default."""
    with open(os.path.join(EXAMPLES, "kubernetes/rbac.yaml"), encoding="utf-8") as f:
        account, role, binding = yaml.safe_load_all(f)
    with open(os.path.join(EXAMPLES, "installer/daemonset.yaml"), encoding="utf-8") as f:
        daemon = yaml.safe_load(f)
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == "default"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}], role
    assert binding["roleRef"] == {"apiGroup": RBAC.split("/")[0], "kind": role["kind"], "name": role["metadata"]["name"]}, binding
    assert binding["subjects"] == [{"kind": account["kind"], **account["metadata"]}], binding
    pod = daemon["spec"]["template"]["spec"]
    assert (pod["serviceAccountName"], daemon["metadata"]["namespace"]) == (account["metadata"]["name"], account["metadata"]["namespace"])
    exporter = pod["containers"][0]
    assert "--kubernetes" in exporter["command"], exporter
    assert {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in exporter["env"], exporter


def check_environment():
    """The ConfigMap sets what env.sh sets."""
    with open(os.path.join(EXAMPLES, "kubernetes/env.yaml"), encoding="utf-8") as f:
        data = yaml.safe_load(f)["data"]
    with open(os.path.join(ROOT, "plugin/nccl/env.sh"), encoding="utf-8") as f:
        names = re.findall(r'^: "\$\{(\w+)=', f.read(), re.M)
    assert names and set(names) <= set(data), names


def check_dockerfile():
    with open(os.path.join(EXAMPLES, "installer/Dockerfile"), encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    verbs = {line.split()[0] for line in text.split("\n") if line and not line.startswith("#")}
    assert verbs <= {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "CMD"}, verbs
    stages = re.findall(r"^FROM \S+ AS (\w+)", text, re.M)
    for source, stage in re.findall(r"^COPY --from=(\w+) (\S+)", text, re.M):
        assert source in stages, stage
    for source in re.findall(r"^COPY (?!--)(\S+)", text, re.M):
        assert os.path.exists(os.path.join(ROOT, source)), "no " + source


def main():
    check_scripts()
    check_checker()
    check_manifests()
    check_rights()
    check_environment()
    check_dockerfile()
    print("scripts, manifests and Dockerfile are sound")


if __name__ == "__main__":
    main()
