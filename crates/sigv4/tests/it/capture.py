"""Makes calls with botocore's own clients and prints the requests it would have sent, instead of sending them.

Time and random ids are fixed, so that two runs differ in nothing but the credentials. Clients sign with awscrt, or
with botocore's own signer if BOTO_DISABLE_CRT is set.
"""

import base64
import datetime
import io
import json
import sys
import uuid

import botocore.auth
import botocore.awsrequest
import botocore.crt.auth
import botocore.session
from botocore.config import Config

REGION = "eu-west-1"

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def now(remove_tzinfo=True):
    return NOW.replace(tzinfo=None) if remove_tzinfo else NOW


botocore.auth.get_current_datetime = now
botocore.crt.auth.get_current_datetime = now
uuid.uuid4 = lambda: uuid.UUID(int=7)


class Captured(Exception):
    pass


def describe(method, url, headers, body):
    if body is None:
        body = b""
    elif hasattr(body, "read"):
        body = body.read()
    parts = botocore.auth.urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    text = lambda value: value.decode() if isinstance(value, bytes) else str(value)
    return {
        "method": method,
        "host": parts.netloc,
        "target": target,
        "headers": [[name, text(value)] for name, value in headers.items()],
        "body": base64.b64encode(body if isinstance(body, bytes) else body.encode()).decode(),
    }


def clients(credentials):
    session = botocore.session.Session()
    config = Config(signature_version="v4", retries={"max_attempts": 1})
    s3 = Config(
        signature_version="s3v4", s3={"addressing_style": "virtual"}, retries={"max_attempts": 1}
    )

    def client(service, config=config, **options):
        return session.create_client(
            service,
            region_name=REGION,
            aws_access_key_id=credentials["access_key_id"],
            aws_secret_access_key=credentials["secret_access_key"],
            aws_session_token=credentials["session_token"],
            config=config,
            **options,
        )

    return client, s3


def calls(client, s3_config):
    s3 = client("s3", s3_config)
    minio = client("s3", s3_config, endpoint_url="https://minio.test:9000")
    dynamodb, sts, iam = client("dynamodb"), client("sts"), client("iam")
    awslambda, bedrock = client("lambda"), client("bedrock-runtime")
    arn = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.x-v1:0"
    key = "a b/ä+c//d/./e!*'()=@~%"
    return {
        "get": lambda: s3.get_object(Bucket="bucket", Key=key),
        "get a version": lambda: s3.get_object(Bucket="bucket", Key="k", VersionId="a+b/c="),
        "list": lambda: s3.list_objects_v2(Bucket="bucket", Prefix="a/b c+d", Delimiter="/"),
        "put bytes": lambda: s3.put_object(
            Bucket="bucket", Key=key, Body=b"hello", Metadata={"a": "two   words", "b": "x"}
        ),
        "put a stream": lambda: s3.put_object(Bucket="bucket", Key="k", Body=io.BytesIO(b"x" * 9999)),
        "put signed": lambda: client(
            "s3", s3_config.merge(Config(s3={"payload_signing_enabled": True}))
        ).put_object(Bucket="bucket", Key="k", Body=b"hello", ChecksumAlgorithm="SHA256"),
        "upload a part": lambda: s3.upload_part(
            Bucket="bucket", Key="k", UploadId="id+/=", PartNumber=3, Body=b"part"
        ),
        "complete": lambda: s3.complete_multipart_upload(
            Bucket="bucket",
            Key="k",
            UploadId="id",
            MultipartUpload={"Parts": [{"ETag": "x", "PartNumber": 1}]},
        ),
        "copy": lambda: s3.copy_object(Bucket="bucket", Key="k", CopySource="other/ö key"),
        "other port": lambda: minio.get_object(Bucket="bucket", Key="k"),
        "query a table": lambda: dynamodb.query(TableName="t", KeyConditionExpression="a = :a"),
        "who am i": lambda: sts.get_caller_identity(),
        "list users": lambda: iam.list_users(PathPrefix="/a b/"),
        "list functions": lambda: awslambda.list_functions(Marker="a+/=", MaxItems=3),
        "list tags": lambda: awslambda.list_tags(
            Resource="arn:aws:lambda:eu-west-1:123456789012:function:f"
        ),
        "invoke a model": lambda: bedrock.invoke_model(modelId="x.claude-v1:0", body=b"{}"),
        "invoke a profile": lambda: bedrock.invoke_model(modelId=arn, body=b"{}"),
        "presigned get": lambda: s3.generate_presigned_url(
            "get_object",
            Params={"Bucket": "bucket", "Key": key, "ResponseContentType": "text/plain; a=b"},
            ExpiresIn=600,
        ),
        "presigned put": lambda: s3.generate_presigned_url(
            "put_object", Params={"Bucket": "bucket", "Key": "k"}, HttpMethod="PUT"
        ),
        "presigned identity": lambda: sts.generate_presigned_url(
            "get_caller_identity", HttpMethod="GET"
        ),
    }


def raw_calls(credentials):
    """Requests that no client makes, signed by the same signer."""
    held = botocore.session.Session()
    held.set_credentials(
        credentials["access_key_id"], credentials["secret_access_key"], credentials["session_token"]
    )
    held = held.get_credentials().get_frozen_credentials()
    api = "https://x.execute-api.eu-west-1.amazonaws.com"
    for name, service, url, headers in [
        ("trailing slash", "execute-api", f"{api}/prod/", {}),
        ("double slashes and dots", "execute-api", f"{api}//prod/./a//../b", {}),
        ("colon in the path", "execute-api", f"{api}/v1:call", {}),
        ("plus in the query", "execute-api", f"{api}/prod?q=a+b&r=%2B", {}),
        ("repeated parameters", "execute-api", f"{api}/prod?b=2&a=2&a=1&a&c=", {}),
        ("date header", "execute-api", f"{api}/prod", {"Date": "x"}),
        ("spaces in values", "execute-api", f"{api}/prod", {"X-A": "  a \t b  ", "X-B": "c"}),
    ]:
        request = botocore.awsrequest.AWSRequest("GET", url, headers=headers)
        botocore.auth.SigV4Auth(held, service, REGION).add_auth(request)
        yield name, describe("GET", request.url, request.headers, None)
    request = botocore.awsrequest.AWSRequest("GET", f"{api}/prod")
    for value in ["z", "a  b", "m"]:
        request.headers.add_header("X-Many", value)
    botocore.auth.SigV4Auth(held, "execute-api", REGION).add_auth(request)
    yield "repeated headers", describe("GET", request.url, request.headers, None)


def capture(credentials):
    client, s3 = clients(credentials)
    seen = []

    def stop(request, **_):
        seen.append(describe(request.method, request.url, request.headers, request.body))
        raise Captured

    def hooked(*args, **options):
        made = client(*args, **options)
        made.meta.events.register("before-send.*", stop)
        return made

    captured = dict(raw_calls(credentials))
    for name, call in calls(hooked, s3).items():
        try:
            url = call()
            method = "PUT" if "put" in name else "GET"
            captured[name] = describe(method, url, {"Host": botocore.auth.urlsplit(url).netloc}, None)
        except Captured:
            captured[name] = seen.pop()
    return captured


print(json.dumps([capture(credentials) for credentials in json.load(sys.stdin)]))
