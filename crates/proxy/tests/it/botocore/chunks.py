"""Signed aws-chunked bodies, as the documentation of S3 describes them."""

import hashlib
import hmac

EMPTY = hashlib.sha256(b"").hexdigest()


class Chain:
    """Signatures of chunks, each of which signs the one before."""

    def __init__(self, secret_key, timestamp, scope, seed):
        key = b"AWS4" + secret_key.encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        self.key, self.timestamp, self.scope, self.previous = key, timestamp, scope, seed

    def chunk(self, data):
        return self._sign("AWS4-HMAC-SHA256-PAYLOAD", EMPTY, hashlib.sha256(data).hexdigest())

    def trailer(self, lines):
        return self._sign("AWS4-HMAC-SHA256-TRAILER", hashlib.sha256(lines).hexdigest())

    def _sign(self, kind, *hashes):
        text = "\n".join([kind, self.timestamp, self.scope, self.previous, *hashes])
        self.previous = hmac.new(self.key, text.encode(), hashlib.sha256).hexdigest()
        return self.previous
