"""Stands in for S3, DynamoDB and API Gateway, and believes no signature that botocore would not have made.

Takes certificate, key and credentials as JSON on the first line of stdin, prints its port, and ends with its stdin.
"""

import binascii
import hashlib
import http.server
import json
import ssl
import sys
import threading
import urllib.parse
import zlib

from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from chunks import Chain

SETTINGS = json.loads(sys.stdin.readline())
OBJECTS = {}
UPLOADS = {}
ITEMS = {}
KEPT = 16 << 20


class Refused(Exception):
    pass


def check(condition, reason):
    if not condition:
        raise Refused(reason)


class Digest:
    """What is remembered of a body: all of it if it is short, otherwise its length and hash."""

    def __init__(self):
        self.length, self.hash, self.crc, self.data = 0, hashlib.sha256(), 0, []

    def update(self, piece):
        self.length += len(piece)
        self.hash.update(piece)
        self.crc = zlib.crc32(piece, self.crc)
        if self.length <= KEPT:
            self.data.append(piece)

    def bytes(self):
        return b"".join(self.data)


class StandIn(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def handle_any(self):
        signature = None
        try:
            parts = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
            for surrogate in SETTINGS["surrogates"]:
                check(surrogate not in str(self.headers) + self.path, "a surrogate came through")
            signature = self.verify_head(query)
            self.respond(parts, query, self.read_body(signature))
        except Refused as refused:
            if signature is None:
                # Who still sends does not listen.
                for _ in self.pieces():
                    pass
            self.close_connection = True
            code = "SignatureDoesNotMatch"
            self.answer(403, f"<Error><Code>{code}</Code><Message>{refused}</Message></Error>".encode())

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

    def verify_head(self, query):
        """Recomputes the signature with botocore, from what arrived and the real credentials."""
        presigned = "X-Amz-Signature" in query
        if presigned:
            credential, names = query["X-Amz-Credential"], query["X-Amz-SignedHeaders"]
            sent, timestamp, token = query["X-Amz-Signature"], query["X-Amz-Date"], query.get("X-Amz-Security-Token")
        else:
            algorithm, _, rest = self.headers.get("Authorization", "").partition(" ")
            check(algorithm == "AWS4-HMAC-SHA256", f"the algorithm is {algorithm!r}")
            fields = dict(part.strip().split("=", 1) for part in rest.split(","))
            credential, names, sent = fields["Credential"], fields["SignedHeaders"], fields["Signature"]
            timestamp, token = self.headers["X-Amz-Date"], self.headers.get("X-Amz-Security-Token")
        key_id, date, region, service, _ = credential.split("/")
        real = SETTINGS["credentials"]
        check(key_id == real["access_key_id"], "the key is not the real one")
        check(token == real["session_token"], "the session token is not the real one")
        check(timestamp.startswith(date), "the dates differ")

        target = self.path
        if presigned:
            head, _, parameters = target.partition("?")
            kept = [part for part in parameters.split("&") if not part.startswith("X-Amz-Signature=")]
            target = f"{head}?{'&'.join(kept)}"
        url = f"https://{self.headers['Host']}{target}"
        request = AWSRequest(method=self.command, url=url, data=b"")
        for name in names.split(";"):
            for value in self.headers.get_all(name) or []:
                request.headers.add_header(name, value)
        request.context["timestamp"] = timestamp
        credentials = Credentials(real["access_key_id"], real["secret_access_key"], real["session_token"])
        kind = S3SigV4QueryAuth if presigned else S3SigV4Auth if service == "s3" else SigV4Auth
        signer = kind(credentials, service, region)
        payload = None if presigned else self.headers.get("X-Amz-Content-SHA256")

        def verify(body):
            # Without the header, botocore hashes the body that it is given.
            request.data = body
            canonical = signer.canonical_request(request)
            expected = signer.signature(signer.string_to_sign(request, canonical), request)
            check(expected == sent, f"the signature is {sent}, not {expected}, of {canonical!r}")

        if payload or presigned:
            verify(b"")
            verify = None
        chain = Chain(real["secret_access_key"], timestamp, "/".join([date, region, service, "aws4_request"]), sent)
        return {"payload": payload, "chain": chain, "verify": verify}

    def read_body(self, signature):
        digest = Digest()
        kind = signature["payload"] or ""
        if kind.startswith("STREAMING-"):
            self.read_chunks(digest, signature["chain"], kind)
            announced = self.headers.get("X-Amz-Decoded-Content-Length")
            check(announced is None or int(announced) == digest.length, "the data has another length")
        else:
            for piece in self.pieces():
                digest.update(piece)
            if kind and kind != "UNSIGNED-PAYLOAD":
                check(digest.hash.hexdigest() == kind, "the body has another hash")
        if signature["verify"]:
            signature["verify"](digest.bytes())
        return digest

    def pieces(self):
        """The body without the framing of HTTP."""
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while size := int(self.rfile.readline(), 16):
                while size:
                    piece = self.rfile.read(min(size, 1 << 16))
                    check(piece, "the body is cut off")
                    size -= len(piece)
                    yield piece
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            check(piece, "the body is cut off")
            left -= len(piece)
            yield piece

    def read_chunks(self, digest, chain, kind):
        stream = Stream(self.pieces())
        signed = kind.startswith("STREAMING-AWS4")
        while True:
            head = stream.line()
            size, _, sent = head.partition(b";chunk-signature=")
            data = stream.read(int(size, 16))
            if signed:
                check(chain.chunk(data).encode() == sent, "a chunk has another signature")
            if not data:
                break
            digest.update(data)
            check(stream.line() == b"", "a chunk does not end")
        lines = []
        while line := stream.line():
            lines.append(line)
        trailers = dict(line.decode().split(":", 1) for line in lines)
        if kind.endswith("-TRAILER"):
            sent = trailers.pop("x-amz-trailer-signature", None)
            text = "".join(f"{name}:{value}\n" for name, value in sorted(trailers.items()))
            if signed:
                check(chain.trailer(text.encode()) == sent, "the trailers have another signature")
            crc = binascii.b2a_base64(digest.crc.to_bytes(4, "big"), newline=False).decode()
            check(trailers == {"x-amz-checksum-crc32": crc}, f"the trailers are {trailers}")
        check(stream.ended(), "there is data behind the end")

    def respond(self, parts, query, body):
        host = self.headers["Host"].split(":")[0]
        if host.startswith("dynamodb."):
            return self.dynamodb(json.loads(body.bytes()))
        if host.startswith("gateway."):
            return self.answer(200, parts.path.encode())
        name = urllib.parse.unquote(parts.path)
        if self.command == "POST" and "uploads" in query:
            upload = str(len(UPLOADS))
            UPLOADS[upload] = {}
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>".encode())
        if self.command == "PUT" and "uploadId" in query:
            UPLOADS[query["uploadId"]][int(query["partNumber"])] = body.bytes()
            return self.answer(200, b"", ETag=f'"{query["partNumber"]}"')
        if self.command == "POST" and "uploadId" in query:
            data = b"".join(data for _, data in sorted(UPLOADS.pop(query["uploadId"]).items()))
            digest = Digest()
            digest.update(data)
            OBJECTS[name] = digest
            return self.answer(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
        if self.command == "PUT":
            OBJECTS[name] = body
            return self.answer(200, b"", ETag='"x"', **{"x-amz-meta-length": str(body.length)})
        if self.command == "GET" and "list-type" in query:
            prefix = f"{name.rstrip('/')}/"
            keys = sorted(key[len(prefix):] for key in OBJECTS if key.startswith(prefix + query.get("prefix", "")))
            # botocore asks for keys that are encoded like URLs, which XML has nothing against.
            check(query.get("encoding-type") == "url", "the keys would have to be escaped")
            contents = "".join(f"<Contents><Key>{urllib.parse.quote(key)}</Key></Contents>" for key in keys)
            return self.answer(200, f"<ListBucketResult><EncodingType>url</EncodingType>{contents}</ListBucketResult>".encode())
        if name not in OBJECTS:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        stored = OBJECTS[name]
        return self.answer(200, stored.bytes(), **{"x-amz-meta-sha256": stored.hash.hexdigest(), "x-amz-meta-length": str(stored.length)})

    def dynamodb(self, call):
        operation = self.headers["X-Amz-Target"].split(".")[1]
        key = json.dumps(call.get("Key") or {"id": call["Item"]["id"]})
        if operation == "PutItem":
            ITEMS[key] = call["Item"]
            return self.answer(200, b"{}")
        return self.answer(200, json.dumps({"Item": ITEMS[key]}).encode())

    def answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Stream:
    """Lines and blocks from pieces."""

    def __init__(self, pieces):
        self.pieces, self.buffer = pieces, b""

    def _more(self):
        piece = next(self.pieces, None)
        check(piece is not None, "the body is cut off")
        self.buffer += piece

    def line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def read(self, size):
        while len(self.buffer) < size:
            self._more()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def ended(self):
        return not self.buffer and next(self.pieces, None) is None


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(SETTINGS["certificate"], SETTINGS["key"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
