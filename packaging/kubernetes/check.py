"""Checks manifests against the schemas of their kinds: those of Kubernetes, which the package
kubernetes-validate has, and a CustomResourceDefinition. Members that a schema does not know are
faults.

    PYTHONPATH=FOLDER-WITH-kubernetes-validate check.py CRD.yml MANIFEST.yaml...
"""

import sys

import jsonschema
import kubernetes_validate
import yaml


def closed(schema):
    """A schema that takes no members which it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    names = isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema
    if names and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema["additionalProperties"] = False
    return schema


def check(manifest, crd):
    kind = crd["spec"]["names"]["kind"]
    if manifest["kind"] != kind:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        return
    version = manifest["apiVersion"].rpartition("/")[2]
    schemas = {one["name"]: one["schema"]["openAPIV3Schema"] for one in crd["spec"]["versions"]}
    spec = closed(schemas[version]["properties"]["spec"])
    # The operator whose schema is at hand is older than the Flink that is named.
    newer = {key: value for key, value in manifest["spec"].items() if key != "flinkVersion"}
    jsonschema.validate(newer, spec)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        crd = yaml.safe_load(file)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for manifest in yaml.safe_load_all(file):
                try:
                    check(manifest, crd)
                except (jsonschema.ValidationError, KeyError) as fault:
                    place = ".".join(map(str, getattr(fault, "absolute_path", [])))
                    why = getattr(fault, "message", fault)
                    sys.exit(f"{path}: {manifest.get('kind')}: {place}: {why}")
                print(path, manifest["kind"])


main()
