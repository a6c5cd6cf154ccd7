"""The demo's stand-in for an API: a DNS server and an HTTPS server on one loopback address.

Writes what it received to its log, prints `ready` once it answers, and ends when its standard input does, so that
it never outlives the demo. Standard library only.
"""

import argparse
import json
import socket
import ssl
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DNS_HEADER = struct.Struct("!6H")
RESPONSE_RECURSIVE = 0x8180
NAME_IS_QUESTION = 0xC00C


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--log", required=True)
    options = parser.parse_args()

    dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dns.bind((options.address, 53))
    threading.Thread(target=answer_names, args=(dns, options.address), daemon=True).start()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    server = ThreadingHTTPServer((options.address, 443), Api)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.log = open(options.log, "a", buffering=1, encoding="utf-8")
    threading.Thread(target=server.serve_forever, daemon=True).start()

    print("ready", flush=True)
    sys.stdin.read()


def answer_names(dns, address):
    """Every A question is answered with our own address; other types get no data."""
    while True:
        packet, client = dns.recvfrom(512)
        if len(packet) <= DNS_HEADER.size:
            continue
        end = packet.find(b"\0", DNS_HEADER.size) + 5
        question = packet[DNS_HEADER.size : end]
        is_a = question[-4:-2] == b"\0\x01"
        ident = DNS_HEADER.unpack_from(packet)[0]
        answer = DNS_HEADER.pack(ident, RESPONSE_RECURSIVE, 1, int(is_a), 0, 0) + question
        if is_a:
            answer += struct.pack("!HHHIH", NAME_IS_QUESTION, 1, 1, 60, 4) + socket.inet_aton(address)
        dns.sendto(answer, client)


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        credential = self.headers.get("Authorization", "none")
        self.server.log.write(f"{self.command} {self.path} authorization: {credential}\n")
        body = json.dumps({"answer": f"hello from {self.headers['Host']}{self.path}"}).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    main()
