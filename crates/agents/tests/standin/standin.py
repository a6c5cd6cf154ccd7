#!/usr/bin/env python3
"""A stand-in for the APIs that Claude Code, Codex and Gemini CLI speak.

It answers just enough of Anthropic's Messages API, OpenAI's Responses API and Google's
generateContent API for the real programs to run against it, and it is scripted by the prompt:

    scenario: tool+429
    run: echo hello > note.txt

The scenario is one step, or several joined by "+". A step is played for every request; each tool
result that the agent sends back moves on to the next step. The last `scenario:` line of the
conversation counts, and without one the answer is a plain sentence. A base URL that ends in
/scenario/NAME sets it for prompts that cannot. Steps:

    say          the text of the `say:` line
    recall       the words of every `remember:` line in the whole conversation
    tool         a call of the agent's shell tool with the command of the `run:` line
    report       the text of the last tool result ("tool" alone means "tool+report")
    subagent     a call of the agent's sub-agent tool, which is told to `say:` the `sub:` line
    long         `size:` bytes of text (default 100000)
    cut          half an answer, then the connection is closed
    hang         half an answer, then silence until the client goes away
    flaky        500 on the first attempt, an answer on the next
    too-long     the API's way of saying that the context window is full
    bad-key      the API's way of refusing a key
    400 401 403 404 429 500 503 529   that status; 429 carries `retry-after:` seconds (default 1)
    later-STEP   that step where the conversation has been going on; else as say

Prints `listening on http://ADDRESS:PORT` once it is ready. `--log FILE` appends one JSON line per
request (method, host, path, credential, scenario, status), for tests to see what arrived.
"""

import argparse
import itertools
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEFAULT_SAY = "Hello from the stand-in."
TOO_LONG = {
    "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
    "openai": "Your input exceeds the context window of this model.",
    "google": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
}


class Script:
    """What the conversation asks to be played, and how far it has come."""

    def __init__(self, turns, forced):
        """`turns` is a list of ("user" | "result" | "assistant", text) in order."""
        self.said = [text for who, text in turns if who == "user"]
        at = max((i for i, (who, text) in enumerate(turns) if who == "user" and line(text, "scenario")), default=None)
        if at is None:
            at = max((i for i, (who, _) in enumerate(turns) if who == "user"), default=0)
        self.prompt = turns[at][1] if turns else ""
        self.results = [text for who, text in turns[at + 1:] if who == "result"]
        self.name = line(self.prompt, "scenario") or forced or "say"
        steps = self.name.split("+")
        if steps[-1] in ("tool", "subagent"):
            steps.append("report")
        self.step = steps[min(len(self.results), len(steps) - 1)]
        if self.step.startswith("later-"):
            spoken = any(who == "assistant" for who, _ in turns)
            self.step = self.step.removeprefix("later-") if spoken else "say"

    def text(self):
        if self.step == "recall":
            words = [word for said in self.said for word in lines(said, "remember")]
            return "I recall: " + (", ".join(words) or "nothing")
        if self.step == "report":
            return "The tool said: " + (self.results[-1].strip()[:400] if self.results else "nothing")
        if self.step == "long":
            size = int(line(self.prompt, "size") or 100_000)
            return ("All work and no play. " * (size // 22 + 1))[:size]
        return line(self.prompt, "say") or DEFAULT_SAY

    def command(self):
        return line(self.prompt, "run") or "echo hello"


def lines(text, key):
    return [found.strip() for found in re.findall(rf"^\s*{key}:\s*(.+)$", text, re.MULTILINE)]


def line(text, key):
    found = lines(text, key)
    return found[-1] if found else None


class Anthropic:
    """POST /v1/messages, streamed or not."""

    name = "anthropic"

    def __init__(self, body):
        self.body = body
        self.id = unique("msg")
        self.model = body.get("model", "claude")
        self.stream = bool(body.get("stream"))
        self.tools = [tool.get("name") for tool in body.get("tools") or []]

    def turns(self):
        for message in self.body.get("messages") or []:
            content = message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
            for block in blocks:
                if block.get("type") == "tool_result":
                    yield "result", flatten(block.get("content"))
                elif block.get("type") == "text":
                    yield message.get("role"), block.get("text", "")

    def call(self, script):
        if script.step == "subagent":
            name = "Agent" if "Agent" in self.tools else "Task"
            told = f"scenario: say\nsay: {line(script.prompt, 'sub') or 'I am the sub-agent.'}"
            return name, {"description": "ask a sub-agent", "prompt": told, "subagent_type": "general-purpose"}
        return "Bash", {"command": script.command(), "description": "run the scripted command"}

    def usage(self):
        return {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}

    def message(self, content, stop):
        return {"id": self.id, "type": "message", "role": "assistant", "model": self.model, "content": content,
                "stop_reason": stop, "stop_sequence": None, "usage": self.usage()}

    def whole(self, text, call):
        if call:
            return self.message([{"type": "tool_use", "id": unique("toolu"), "name": call[0], "input": call[1]}], "tool_use")
        return self.message([{"type": "text", "text": text}], "end_turn")

    def events(self, text, call):
        yield "message_start", {"message": self.message([], None)}
        if call:
            block = {"type": "tool_use", "id": unique("toolu"), "name": call[0], "input": {}}
            yield "content_block_start", {"index": 0, "content_block": block}
            yield "content_block_delta", {"index": 0, "delta": {"type": "input_json_delta", "partial_json": json.dumps(call[1])}}
        else:
            yield "content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}
            for part in halves(text):
                yield "content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": part}}
        yield "content_block_stop", {"index": 0}
        stop = "tool_use" if call else "end_turn"
        yield "message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": self.usage()}
        yield "message_stop", {}

    def frame(self, kind, fields):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    def error(self, step, script):
        kinds = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
                 429: "rate_limit_error", 500: "api_error", 503: "api_error", 529: "overloaded_error"}
        status, text = 400, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after"
        if step == "too-long":
            text = TOO_LONG[self.name]
        elif step == "bad-key":
            status, text = 401, "invalid x-api-key"
        elif step != "400":
            status = int(step)
            text = "Overloaded" if status == 529 else f"the stand-in answers {status}"
        return status, {"type": "error", "error": {"type": kinds[status], "message": text}}


class OpenAi:
    """POST /v1/responses, always streamed."""

    name = "openai"
    stream = True

    def __init__(self, body):
        self.body = body
        self.model = body.get("model", "gpt")
        offered = list(body.get("tools") or [])
        for item in body.get("input") or []:
            if item.get("type") == "additional_tools":
                offered += [tool for space in item.get("tools") or [] for tool in space.get("tools") or [space]]
        self.tools = [tool.get("name") or tool.get("type") for tool in offered]

    def turns(self):
        for item in self.body.get("input") or []:
            if item.get("type") in ("function_call_output", "custom_tool_call_output"):
                yield "result", flatten(item.get("output"))
            elif item.get("type", "message") == "message" and item.get("role") in ("user", "assistant"):
                yield item["role"], flatten(item.get("content"))

    def call(self, script):
        if "exec_command" in self.tools:
            return "exec_command", {"cmd": script.command()}
        if "exec" in self.tools:
            # Newer models write JavaScript that calls the tools.
            ask = json.dumps({"cmd": script.command()})
            return "exec", f"const done = await tools.exec_command({ask});\ntext(done.output);"
        return "shell_command", {"command": script.command()}

    def response(self, status, **fields):
        return {"id": "resp_standin", "object": "response", "created_at": int(time.time()), "status": status,
                "model": self.model, "output": [], **fields}

    def events(self, text, call):
        yield "response.created", {"response": self.response("in_progress")}
        if call:
            item = {"call_id": unique("call"), "name": call[0], "status": "completed"}
            if isinstance(call[1], str):
                item |= {"type": "custom_tool_call", "id": unique("ctc"), "namespace": "functions", "input": call[1]}
            else:
                item |= {"type": "function_call", "id": unique("fc"), "arguments": json.dumps(call[1])}
            yield "response.output_item.added", {"output_index": 0, "item": item}
        else:
            item = {"type": "message", "id": unique("msg"), "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]}
            yield "response.output_item.added", {"output_index": 0, "item": {**item, "content": [], "status": "in_progress"}}
            for part in halves(text):
                yield "response.output_text.delta", {"item_id": item["id"], "output_index": 0, "content_index": 0, "delta": part}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        usage = {"input_tokens": 12, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 17}
        yield "response.completed", {"response": self.response("completed", output=[item], usage=usage)}

    def frame(self, kind, fields):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

    def failure(self, code, text):
        """The API reports some refusals inside a stream that began well."""
        yield "response.created", {"response": self.response("in_progress")}
        yield "response.failed", {"response": self.response("failed", error={"code": code, "message": text})}

    def error(self, step, script):
        codes = {400: "invalid_request_error", 401: "invalid_api_key", 403: "access_denied", 404: "not_found",
                 429: "rate_limit_exceeded", 500: "server_error", 503: "server_is_overloaded"}
        status = {"bad-key": 401, "529": 503}.get(step) or int(step)
        text = {"bad-key": "Incorrect API key provided.", "529": "The server is overloaded."}.get(step, f"the stand-in answers {status}")
        return status, {"error": {"message": text, "type": codes[status], "param": None, "code": codes[status]}}


class Google:
    """POST /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens."""

    name = "google"

    def __init__(self, body, method):
        self.body = body
        self.stream = method == "streamGenerateContent"
        self.tools = [f.get("name") for tool in body.get("tools") or [] for f in tool.get("functionDeclarations") or []]

    def turns(self):
        for content in self.body.get("contents") or []:
            for part in content.get("parts") or []:
                if "functionResponse" in part:
                    yield "result", flatten(part["functionResponse"].get("response"))
                elif "text" in part:
                    yield "user" if content.get("role") == "user" else "assistant", part["text"]

    def call(self, script):
        return "run_shell_command", {"command": script.command(), "description": "run the scripted command"}

    def chunk(self, parts, finish=None):
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 12, "candidatesTokenCount": 5, "totalTokenCount": 17}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in", "responseId": "standin"}

    def whole(self, text, call):
        if call:
            return self.chunk([{"functionCall": {"name": call[0], "args": call[1]}}], "STOP")
        return self.chunk([{"text": text}], "STOP")

    def aside(self):
        """Gemini CLI asks small models how to route a prompt; the script is not meant for those."""
        if (self.body.get("generationConfig") or {}).get("responseMimeType") != "application/json":
            return None
        return self.whole(json.dumps({"reasoning": "scripted", "next_speaker": "user", "model_choice": "flash",
                                      "complexity_score": 1, "complexity_reasoning": "scripted"}), None)

    def events(self, text, call):
        if call:
            yield None, self.whole(text, call)
            return
        first, second = halves(text)
        yield None, self.chunk([{"text": first}])
        yield None, self.chunk([{"text": second}], "STOP")

    def frame(self, _kind, fields):
        return f"data: {json.dumps(fields)}\r\n\r\n"

    def error(self, step, script):
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
        details = []
        if step == "too-long":
            status, text = 400, TOO_LONG[self.name]
        elif step == "bad-key":
            status, text = 400, "API key not valid. Please pass a valid API key."
            details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
        else:
            status = {"529": 503}.get(step) or int(step)
            text = "The model is overloaded. Please try again later." if step == "529" else f"the stand-in answers {status}"
        if status == 429:
            seconds = line(script.prompt, "retry-after") or "1"
            details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}]
        return status, {"error": {"code": status, "message": text, "status": names[status], "details": details}}


def flatten(value):
    """All text inside a content value, whichever shape this API gives it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(flatten(item) for item in value)
    if isinstance(value, dict):
        return flatten(value.get("text") or value.get("output") or value.get("content") or value.get("error") or "")
    return ""


def halves(text):
    middle = len(text) // 2
    return text[:middle], text[middle:]


def unique(prefix):
    return f"{prefix}_{next(NUMBERS):06}"


NUMBERS = itertools.count(1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    attempts = {}
    log_lock = threading.Lock()
    log_path = None

    def do_GET(self):
        path, _ = self.route()
        if self.headers.get("upgrade"):
            # Codex tries a WebSocket first and takes this answer as "use plain HTTP".
            self.record(path, None, 426)
            return self.answer(426, {"error": {"message": "no upgrade here", "code": 426, "type": "upgrade_required"}})
        self.record(path, None, 404)
        return self.answer(404, {"error": {"message": "the stand-in knows no such page", "code": 404, "type": "not_found_error"}})

    do_HEAD = do_PUT = do_DELETE = do_GET

    def do_POST(self):
        path, forced = self.route()
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(length) or b"{}") if length else {}
        except ValueError:
            body = {}
        if path == "/v1/messages":
            self.play(path, Anthropic(body), forced)
        elif path == "/v1/messages/count_tokens":
            self.answer(200, {"input_tokens": 12})
        elif path == "/v1/responses":
            self.play(path, OpenAi(body), forced)
        elif found := re.fullmatch(r"/v1(?:beta|alpha)?/models/[^:]+:(\w+)", path):
            api = Google(body, found[1])
            if found[1] == "countTokens":
                self.answer(200, {"totalTokens": 12})
            elif aside := api.aside():
                self.answer(200, aside)
            else:
                self.play(path, api, forced)
        else:
            self.record(path, None, 404)
            self.answer(404, {})

    def route(self):
        path = self.path.split("?")[0]
        if found := re.match(r"/scenario/([^/]+)(/.*)", path):
            return found[2], found[1]
        return path, None

    def play(self, path, api, forced):
        script = Script(list(api.turns()), forced)
        step = script.step
        if step == "flaky":
            seen = self.attempts.get(script.prompt, 0)
            self.attempts[script.prompt] = seen + 1
            step = "say" if seen else "500"
        if step == "too-long" and api.name == "openai":
            self.record(path, script, 200)
            return self.send_events(api, api.failure("context_length_exceeded", TOO_LONG["openai"]))
        if step in ("too-long", "bad-key") or step.isdigit():
            status, body = api.error(step, script)
            self.record(path, script, status)
            extra = [("retry-after", line(script.prompt, "retry-after") or "1")] if status == 429 else []
            return self.answer(status, body, extra)
        self.record(path, script, 200)
        call = api.call(script) if step in ("tool", "subagent") else None
        if not api.stream:
            # Claude Code asks again without streaming when a stream breaks.
            if step == "cut":
                return self.reset()
            if step == "hang":
                return self.wait_for_close()
            return self.answer(200, api.whole(script.text(), call))
        return self.send_events(api, api.events(script.text(), call), step)

    def send_events(self, api, events, step="say"):
        frames = [api.frame(kind, fields) for kind, fields in events]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if step in ("cut", "hang"):
            frames = frames[: max(1, len(frames) // 2)]
        for frame in frames:
            self.chunk(frame.encode())
        if step == "cut":
            return self.reset()
        if step == "hang":
            return self.wait_for_close()
        self.chunk(b"")

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def reset(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def wait_for_close(self):
        self.close_connection = True
        while self.connection.recv(1024):
            pass

    def answer(self, status, body, extra=()):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in extra:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def record(self, path, script, status):
        if not self.log_path:
            return
        credential = next((self.headers[name] for name in ("x-api-key", "x-goog-api-key", "authorization") if self.headers[name]), None)
        entry = {"method": self.command, "host": self.headers["host"], "path": path, "credential": credential,
                 "scenario": script and script.name, "step": script and script.step, "status": status}
        with self.log_lock, open(self.log_path, "a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    tls = None

    def finish_request(self, request, client_address):
        # The handshake happens on the connection's own thread, so a silent client stalls nobody.
        if self.tls:
            request = self.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        error = sys.exc_info()[1]
        if not isinstance(error, (OSError, ssl.SSLError)):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--cert", help="PEM certificate chain; serves TLS")
    parser.add_argument("--key", help="PEM key of --cert")
    parser.add_argument("--log", help="append one JSON line per request to this file")
    args = parser.parse_args()
    Handler.log_path = args.log
    server = Server((args.address, args.port), Handler)
    if args.cert:
        server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.tls.load_cert_chain(args.cert, args.key)
    scheme = "https" if args.cert else "http"
    print(f"listening on {scheme}://{args.address}:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
