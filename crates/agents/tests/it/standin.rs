//! The stand-in API server itself: it must not rot, others build on it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

/// A running stand-in; stopped when dropped.
pub(crate) struct Standin {
    child: Child,
    address: String,
}

impl Standin {
    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    pub(crate) fn start() -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/standin/standin.py");
        let mut child = Command::new("python3")
            .arg(program)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for this test");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap();
        Self {
            address: address.to_owned(),
            child,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn post(&self, path: &str, body: &Value) -> (String, String) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn anthropic(prompt: &str) -> Value {
    json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": prompt}]})
}

fn openai(prompt: &str) -> Value {
    json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": prompt}]}]})
}

fn google(prompt: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]})
}

const MESSAGES: &str = "/v1/messages?beta=true";
const RESPONSES: &str = "/v1/responses";
const GENERATE: &str = "/v1beta/models/m:streamGenerateContent?alt=sse";

#[test]
fn it_says_what_the_prompt_asks_in_all_three_dialects() {
    let standin = Standin::start();
    let prompt = "scenario: say\nsay: walrus";
    for (path, body, end) in [
        (MESSAGES, anthropic(prompt), "message_stop"),
        (RESPONSES, openai(prompt), "response.completed"),
        (GENERATE, google(prompt), "\"finishReason\": \"STOP\""),
    ] {
        let (head, body) = standin.post(path, &body);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(body.contains("wal") && body.contains("rus"), "{body}");
        assert!(body.contains(end), "{body}");
    }
}

#[test]
fn it_refuses_as_the_prompt_asks() {
    let standin = Standin::start();
    let prompt = "scenario: 429\nretry-after: 7";
    for (path, body) in [
        (MESSAGES, anthropic(prompt)),
        (RESPONSES, openai(prompt)),
        (GENERATE, google(prompt)),
    ] {
        let (head, _) = standin.post(path, &body);
        assert!(head.starts_with("HTTP/1.1 429"), "{head}");
        assert!(head.contains("retry-after: 7"), "{head}");
    }
}

#[test]
fn a_tool_result_moves_on_to_the_next_step() {
    let standin = Standin::start();
    let asked = json!({"role": "user", "content": "scenario: tool\nrun: ls"});
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "a.txt"}
    ]});
    let request = |messages: Value| json!({"model": "m", "messages": messages});
    let (_, first) = standin.post(MESSAGES, &request(json!([asked])));
    assert!(
        first.contains("tool_use") && first.contains("\"command\": \"ls\""),
        "{first}"
    );
    let (_, second) = standin.post(MESSAGES, &request(json!([asked, result])));
    assert!(second.contains("The tool said: a.txt"), "{second}");
}

#[test]
fn the_path_may_set_the_scenario() {
    let standin = Standin::start();
    let (head, _) = standin.post("/scenario/500/v1/messages", &anthropic("hello"));
    assert!(head.starts_with("HTTP/1.1 500"), "{head}");
}
