"""Signs requests with awscrt, with each of the given credentials, and prints them."""

import base64
import datetime
import io
import json
import sys

from awscrt import auth, http

ALGORITHMS = {"v4": auth.AwsSigningAlgorithm.V4, "v4a": auth.AwsSigningAlgorithm.V4_ASYMMETRIC}
TYPES = {
    "header": auth.AwsSignatureType.HTTP_REQUEST_HEADERS,
    "query": auth.AwsSignatureType.HTTP_REQUEST_QUERY_PARAMS,
}
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
HOST = "bucket.s3.amazonaws.com"
CHUNKS = "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"

# service, path, further headers, body, value that stands for the payload's hash
CASES = {
    "s3": ("s3", "/a%20b//c/./d?x=1&y=a%2Bb&x=0", [], b"", "UNSIGNED-PAYLOAD"),
    "s3 hashed": ("s3", "/k", [("X-Amz-Meta-A", "  a   b ")], b"hello", None),
    "s3 chunked": ("s3", "/k", [("x-amz-decoded-content-length", "66560")], b"", CHUNKS),
    "s3 trailer": ("s3", "/k", [("x-amz-trailer", "x-amz-checksum-crc32")], b"", CHUNKS + "-TRAILER"),
    "other": ("bedrock", "/model//x-v1%3A0/./invoke/?a=b/c", [("X-B", "2"), ("X-B", "1")], b"{}", None),
}


def sign(algorithm, kind, case, credentials):
    service, path, headers, body, payload = CASES[case]
    request = http.HttpRequest(
        "PUT", path, http.HttpHeaders([("Host", HOST)] + headers), io.BytesIO(body)
    )
    single = service == "s3"
    send_hash = kind == "header" and payload is not None or case == "s3 hashed"
    config = auth.AwsSigningConfig(
        algorithm=ALGORITHMS[algorithm],
        signature_type=TYPES[kind],
        credentials_provider=auth.AwsCredentialsProvider.new_static(
            credentials["access_key_id"],
            credentials["secret_access_key"],
            credentials["session_token"],
        ),
        region="*" if algorithm == "v4a" else "eu-west-1",
        service=service,
        date=NOW,
        use_double_uri_encode=not single,
        should_normalize_uri_path=not single,
        signed_body_value=payload,
        signed_body_header_type=auth.AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256
        if send_hash
        else auth.AwsSignedBodyHeaderType.NONE,
        expiration_in_seconds=600 if kind == "query" else None,
    )
    signed = auth.aws_sign_request(request, config).result()
    return {
        "method": signed.method,
        "host": HOST,
        "target": signed.path,
        "headers": [list(pair) for pair in signed.headers],
        "body": base64.b64encode(body).decode(),
    }


found = {}
credentials = json.load(sys.stdin)
for algorithm in ALGORITHMS:
    for kind in TYPES:
        for case in CASES:
            chunked = "chunked" in case or "trailer" in case
            if chunked and (algorithm, kind) != ("v4a", "header"):
                continue
            # A presigned URL does not say what its payload's hash is unless the service has a rule for it.
            if kind == "query" and case == "s3 hashed":
                continue
            found[f"{algorithm} {kind} {case}"] = [
                sign(algorithm, kind, case, held) for held in credentials
            ]
print(json.dumps(found))
