//! The clients that people use, as a distribution ships them, through the door. What each prints is
//! the judge, and that each request leaves one record.

mod registries;

use std::process::Command;

use origin::Origin;
use serde_json::Value;

use crate::setup::{AGENTS, CLIENTS, Run, Setup, on_every_engine};

/// Runs a script that may reach the stand-in; gives what it printed, and `METHOD URL STATUS` of every
/// request that was recorded.
fn ask(setup: Setup, image: &str, origin: &Origin, script: &[&str]) -> (String, Vec<String>) {
    let run = Run::new(setup)
        .image(image)
        .origin(origin, &["api.example.com"])
        .command(script);
    let ended = run.succeed();
    let requests = run.requests().iter().map(line).collect();
    (ended.stdout, requests)
}

fn line(request: &Value) -> String {
    assert_eq!(request["verdict"], "allowed", "{request}");
    let text = |name: &str| request[name].as_str().unwrap().to_owned();
    format!("{} {} {}", text("method"), text("url"), request["status"])
}

on_every_engine! {
    fn curl_speaks_http_1_and_http_2(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = "set -e; for version in --http1.1 --http2; do \
            curl -sSf $version -o /dev/null -w '%{http_version} %{http_code}\\n' https://api.example.com/echo -d body; done";
        let (said, requests) = ask(setup, CLIENTS, &origin, &["sh", "-c", script]);
        assert_eq!(said, "1.1 200\n2 200\n");
        assert_eq!(requests, ["POST https://api.example.com/echo 200"; 2]);
    }

    fn node_fetches(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
            const answer = await fetch("https://api.example.com/echo", { method: "PUT", body: "from node" });
            console.log(answer.status, (await answer.json()).body);
        "#;
        let (said, requests) = ask(setup, CLIENTS, &origin, &["node", "--input-type=module", "-e", script]);
        assert_eq!(said, "200 from node\n");
        assert_eq!(requests, ["PUT https://api.example.com/echo 200"]);
    }

    fn python_requests_and_httpx_over_both_versions_of_http(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
import httpx, requests
answer = requests.post("https://api.example.com/echo?by=requests", data="from requests")
print(answer.status_code, answer.json()["body"])
for http2 in (False, True):
    with httpx.Client(http2=http2) as client:
        answer = client.post("https://api.example.com/echo?by=httpx", content="from httpx")
        print(answer.http_version, answer.status_code, answer.json()["body"])
"#;
        let (said, requests) = ask(setup, CLIENTS, &origin, &["python3", "-c", script]);
        assert_eq!(said, "200 from requests\nHTTP/1.1 200 from httpx\nHTTP/2 200 from httpx\n");
        assert_eq!(requests, [
            "POST https://api.example.com/echo?by=requests 200",
            "POST https://api.example.com/echo?by=httpx 200",
            "POST https://api.example.com/echo?by=httpx 200",
        ]);
    }

    fn git_clones_over_https(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let repositories = origin.serve_git("nobodys");
        let made = Command::new("sh").current_dir(&repositories).args(["-c", "set -e; git init -q -b main work; cd work; \
            echo content > file; git add file; git -c user.name=a -c user.email=a@example.com commit -qm one; \
            cd ..; git clone -q --bare work project.git"]).status().unwrap();
        assert!(made.success());
        let script = "git clone -q 'https://user:nobodys@api.example.com/git/project.git' /tmp/clone && cat /tmp/clone/file";
        let (said, requests) = ask(setup, CLIENTS, &origin, &["sh", "-c", script]);
        assert_eq!(said, "content\n");
        // Git asks without a password first, and for what there is before it asks for objects.
        let refs = "GET https://api.example.com/git/project.git/info/refs?service=git-upload-pack";
        let pack = "POST https://api.example.com/git/project.git/git-upload-pack 200";
        assert_eq!(requests, [&format!("{refs} 401"), &format!("{refs} 200"), pack, pack]);
    }

    fn grpc_calls_streams_and_statuses(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
import grpc
with grpc.secure_channel("api.example.com:443", grpc.ssl_channel_credentials()) as channel:
    answer, call = channel.unary_unary("/door.Probe/Echo").with_call(b"hello", timeout=60)
    print(answer, call.code(), dict(call.trailing_metadata()))
    print(list(channel.unary_stream("/door.Probe/Count")(b"3", timeout=60)))
    try:
        channel.unary_unary("/door.Probe/Missing")(b"", timeout=60)
    except grpc.RpcError as error:
        print(error.code(), error.details())
"#;
        let (said, requests) = ask(setup, CLIENTS, &origin, &["python3", "-c", script]);
        assert_eq!(said, "b'hello' StatusCode.OK {'said-at-the-end': 'goodbye'}\n\
            [b'1', b'2', b'3']\nStatusCode.UNIMPLEMENTED no such method\n");
        let asked = ["Echo", "Count", "Missing"].map(|method| format!("POST https://api.example.com/door.Probe/{method} 200"));
        assert_eq!(requests, asked);
    }

    fn a_websocket_of_python_echoes(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
import asyncio, websockets
async def main():
    async with websockets.connect("wss://api.example.com/websocket") as socket:
        for text in ("one", "two"):
            await socket.send(text)
            print(await socket.recv())
asyncio.run(main())
"#;
        let (said, requests) = ask(setup, CLIENTS, &origin, &["python3", "-c", script]);
        assert_eq!(said, "one\ntwo\n");
        assert_eq!(requests, ["GET https://api.example.com/websocket 101"]);
    }

    fn a_websocket_of_node_echoes(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let script = r#"
            const socket = new WebSocket("wss://api.example.com/websocket");
            socket.onopen = () => socket.send("from node");
            socket.onmessage = ({ data }) => { console.log(data); socket.close(); };
            socket.onerror = ({ message }) => console.log(message);
        "#;
        // Debian's node is older than WebSocket is in node.
        let (said, requests) = ask(setup, AGENTS, &origin, &["node", "-e", script]);
        assert_eq!(said, "from node\n");
        assert_eq!(requests, ["GET https://api.example.com/websocket 101"]);
    }

    fn a_refused_run_ends_with_what_would_allow_it(setup) {
        let origin = Origin::start(&["*.example.com"]);
        let allowlist = "domains: [near.example.com]\nurl_prefixes: [{ host: api.example.com, path: /status, private_addresses: true }]\n";
        let run = Run::new(setup).image(CLIENTS).origin_with(&origin, allowlist).sh(
            "for u in far.example.com far.example.com/again other.example.com near.example.com api.example.com/else; do \
             curl -sS --http1.1 -o /dev/null -D - https://$u | head -n 1; done",
        );
        let ended = run.succeed();
        assert_eq!(ended.stdout, "HTTP/1.1 403 Blocked by the sandbox's network allowlist\r\n".repeat(5));
        let about_requests = ended.stderr.find("warning: 5 requests").unwrap_or_default();
        assert_eq!(&ended.stderr[about_requests..], "warning: 5 requests were refused by the network allowlist: \
            far.example.com, near.example.com, other.example.com and others\n\
            hint: to let the command reach them: --allow far.example.com --allow other.example.com\n\
            hint: `near.example.com` leads to an address outside the public internet; an allowlist lets it pass with \
            `domains: [{ host: \"near.example.com\", private_addresses: true }]`\n\
            hint: --network-log FILE shows each of them with its reason\n");
        let quiet = run.flags(["--quiet"]).succeed();
        assert_eq!(quiet.stderr, "");
    }
}
