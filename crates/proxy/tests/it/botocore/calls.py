"""Calls S3, DynamoDB and an API as programs in the container do: with botocore and the surrogates.

Everything goes to one address, where the proxy listens. Takes its settings as JSON on stdin.
"""

import base64
import hashlib
import http.client
import json
import os
import ssl
import sys
import tempfile
import urllib.request
import zlib

import botocore.session
import urllib3.util.connection
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from chunks import Chain

SETTINGS = json.load(sys.stdin)
DOOR = tuple(SETTINGS["door"])
REGION = "eu-west-1"
CHUNK = 1 << 20

connect = urllib3.util.connection.create_connection
urllib3.util.connection.create_connection = lambda address, *more, **options: connect(DOOR, *more, **options)


def host(service):
    return f"{service}.api.test:{SETTINGS['port']}"


def client(service, **config):
    return botocore.session.Session().create_client(
        service,
        region_name=REGION,
        endpoint_url=f"https://{host(service)}",
        verify=SETTINGS["ca"],
        aws_access_key_id=SETTINGS["access_key_id"],
        aws_secret_access_key=SETTINGS["secret_access_key"],
        aws_session_token=SETTINGS["session_token"],
        config=Config(retries={"max_attempts": 1}, **config),
    )


def credentials():
    return Credentials(SETTINGS["access_key_id"], SETTINGS["secret_access_key"], SETTINGS["session_token"])


def secured():
    context = ssl.create_default_context(cafile=SETTINGS["ca"])
    connection = http.client.HTTPSConnection("s3.api.test", SETTINGS["port"], context=context)
    connection._create_connection = lambda *_: connect(DOOR)
    return connection


def put_get_list(s3):
    name = "folder/with space & +signs/ü.txt"
    s3.put_object(Bucket="bucket", Key=name, Body=b"hello", Metadata={"a": "b  c"}, ContentType="text/plain")
    assert s3.get_object(Bucket="bucket", Key=name)["Body"].read() == b"hello"
    assert s3.head_object(Bucket="bucket", Key=name)["ContentLength"] == 5
    s3.put_object(Bucket="bucket", Key="empty", Body=b"")
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket="bucket", Prefix="folder/with ")["Contents"]]
    assert keys == [name], keys


def multipart(s3):
    upload = s3.create_multipart_upload(Bucket="bucket", Key="parts")["UploadId"]
    parts = [bytes([number]) * (5 << 20) for number in (1, 2)]
    tags = []
    for number, data in enumerate(parts, 1):
        tag = s3.upload_part(Bucket="bucket", Key="parts", UploadId=upload, PartNumber=number, Body=data)["ETag"]
        tags.append({"PartNumber": number, "ETag": tag})
    s3.complete_multipart_upload(Bucket="bucket", Key="parts", UploadId=upload, MultipartUpload={"Parts": tags})
    metadata = s3.head_object(Bucket="bucket", Key="parts")["Metadata"]
    assert metadata["sha256"] == hashlib.sha256(b"".join(parts)).hexdigest()


def large(s3, size):
    """An upload with a checksum behind it, as botocore streams files."""
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        s3.put_object(Bucket="bucket", Key="large", Body=file)
    assert s3.head_object(Bucket="bucket", Key="large")["Metadata"]["length"] == str(size)


def signed_chunks(size, trailer):
    """An upload whose chunks are signed, which botocore leaves to other clients."""
    kind = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
    request = AWSRequest(method="PUT", url=f"https://{host('s3')}/bucket/chunks{trailer}")
    request.headers["X-Amz-Decoded-Content-Length"] = str(size)
    request.headers["Content-Encoding"] = "aws-chunked"
    if trailer:
        request.headers["X-Amz-Trailer"] = "x-amz-checksum-crc32"
    signer = S3SigV4Auth(credentials(), "s3", REGION)
    signer.payload = lambda _: kind
    signer.add_auth(request)
    authorization = request.headers["Authorization"]
    scope = authorization.split("Credential=")[1].split(",")[0].split("/", 1)[1]
    seed = authorization.split("Signature=")[1]
    chain = Chain(SETTINGS["secret_access_key"], request.headers["X-Amz-Date"], scope, seed)
    block, left, crc = os.urandom(CHUNK), size, 0

    def body():
        nonlocal left, crc
        while left:
            data = block[: min(left, CHUNK)]
            left -= len(data)
            crc = zlib.crc32(data, crc)
            yield b"%x;chunk-signature=%s\r\n%s\r\n" % (len(data), chain.chunk(data).encode(), data)
        yield b"0;chunk-signature=%s\r\n" % chain.chunk(b"").encode()
        if trailer:
            line = "x-amz-checksum-crc32:" + base64.b64encode(crc.to_bytes(4, "big")).decode()
            yield f"{line}\r\nx-amz-trailer-signature:{chain.trailer(f'{line}{chr(10)}'.encode())}\r\n".encode()
        yield b"\r\n"

    full, rest = divmod(size, CHUNK)
    sizes = [CHUNK] * full + ([rest] if rest else [])
    framing = len(";chunk-signature=") + 64 + 2
    length = sum(len(f"{size:x}") + framing + size + 2 for size in sizes) + 1 + framing + 2
    if trailer:
        length += len("x-amz-checksum-crc32:AAAAAA==\r\n") + len("x-amz-trailer-signature:") + 66
    headers = dict(request.headers.items())
    headers["Content-Length"] = str(length)
    connection = secured()
    try:
        connection.request("PUT", f"/bucket/chunks{trailer}", body=body(), headers=headers)
    except OSError:
        # There is an answer that tells why.
        pass
    response = connection.getresponse()
    text = response.read()
    assert response.status == 200, text
    assert response.headers["x-amz-meta-length"] == str(size)


def presigned(s3):
    s3.put_object(Bucket="bucket", Key="shared", Body=b"for everybody")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "shared"}, ExpiresIn=60)
    connection = secured()
    connection.request("GET", url.split(str(SETTINGS["port"]), 1)[1])
    response = connection.getresponse()
    text = response.read()
    assert (response.status, text) == (200, b"for everybody"), text


def dynamodb():
    table = client("dynamodb")
    item = {"id": {"S": "1"}, "text": {"S": "x" * 100_000}}
    table.put_item(TableName="things", Item=item)
    assert table.get_item(TableName="things", Key={"id": {"S": "1"}})["Item"] == item


def trailing_slash():
    """An API behind API Gateway, where a slash at the end matters."""
    for path in ["/prod/", "/prod//a", "/prod/a%20b/?x=1&x=%2F"]:
        request = AWSRequest(method="GET", url=f"https://{host('gateway')}{path}")
        SigV4Auth(credentials(), "execute-api", REGION).add_auth(request)
        response = URLLib3Session(verify=SETTINGS["ca"]).send(request.prepare())
        assert response.status_code == 200, response.content


s3 = client("s3", signature_version="s3v4", s3={"addressing_style": "path"})
size = SETTINGS["upload_mib"] << 20
if SETTINGS["all"]:
    put_get_list(s3)
    multipart(s3)
    presigned(s3)
    dynamodb()
    trailing_slash()
    signed_chunks(3 * CHUNK + 17, "")
    signed_chunks(200_001, "-trailer")
large(s3, size)
signed_chunks(size, "")
print("done")
