"""Prints what calls look like on the wire, from botocore's models of the services.

With null on stdin: all operations of all services whose answer has a member that holds a secret key or a registry
login. With a list of services: all operations of those.
"""

import json
import re
import sys

import botocore.session

SECRET = re.compile("^(secret_?(access)?_?key|authorizationtoken|servicepassword)$", re.IGNORECASE)

# Keys that the caller stored there itself.
STORED = {"CreateTopicRuleDestination", "GetTopicRuleDestination", "ListTopicRuleDestinations"}


def carries_secret(shape, seen=frozenset()):
    if shape is None or shape.name in seen:
        return False
    seen = seen | {shape.name}
    if shape.type_name == "structure":
        return any(
            SECRET.match(name) or carries_secret(member, seen)
            for name, member in shape.members.items()
        )
    if shape.type_name == "list":
        return carries_secret(shape.member, seen)
    if shape.type_name == "map":
        return carries_secret(shape.value, seen)
    return False


def on_the_wire(model, name):
    operation = model.operation_model(name)
    target = re.sub(r"\{[^}]*\}", "x", operation.http["requestUri"])
    header = body = ""
    protocol = model.metadata["protocol"]
    if protocol in ("query", "ec2"):
        body = f"Action={name}&Version={model.metadata['apiVersion']}"
    elif protocol == "json":
        header = f"{model.metadata['targetPrefix']}.{name}"
    elif protocol == "smithy-rpc-v2-cbor":
        target = f"/service/{model.metadata['targetPrefix']}/operation/{name}"
    return {
        "service": model.signing_name,
        "name": name,
        "method": operation.http["method"],
        "target": target,
        "target_header": header,
        "body": body,
    }


session = botocore.session.get_session()
wanted = json.load(sys.stdin)
found = []
for service in wanted or session.get_available_services():
    model = session.get_service_model(service)
    for name in model.operation_names:
        secret = carries_secret(model.operation_model(name).output_shape)
        if wanted or secret and name not in STORED:
            found.append(on_the_wire(model, name))
print(json.dumps(found))
