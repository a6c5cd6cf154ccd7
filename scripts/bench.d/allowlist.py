"""mitmproxy with the work that Cordon does: hosts checked against an allowlist, a line for each request."""

import fnmatch
import os
import time

ALLOWED = [f"*.host{number}.example" for number in range(20)] + ["api.test"]


class Allowlist:
    def __init__(self):
        self.log = open(os.environ["BENCH_LOG"], "a", buffering=1)

    def requestheaders(self, flow):
        host = flow.request.pretty_host
        if not any(fnmatch.fnmatchcase(host, pattern) for pattern in ALLOWED):
            flow.kill()
        flow.request.stream = True

    def responseheaders(self, flow):
        flow.response.stream = True

    def response(self, flow):
        request, response = flow.request, flow.response
        taken = time.time() - request.timestamp_start
        self.log.write(f"allow {request.method} {request.pretty_url} {response.status_code} {taken:.3f}\n")


addons = [Allowlist()]
