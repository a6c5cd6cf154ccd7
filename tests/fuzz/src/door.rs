//! The proxy itself: bytes of any kind on its sockets, under an allowlist that allows nothing.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    panic,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use cordon_policy::Allowlist;
use cordon_proxy::{
    CertificateAuthority, Event, Limits, Proxy, Record, Settings, Sockets, Verdict, answer,
};
use hickory_proto::{op::Message, serialize::binary::BinDecodable};
use tokio::runtime::Runtime;

/// A reply is a message with the question's id, and not much longer than the question.
pub fn dns(data: &[u8]) {
    let Some(answer) = answer(data, Ipv4Addr::new(10, 0, 0, 1)) else {
        return;
    };
    let reply = Message::from_bytes(&answer.reply).expect("the reply is a message");
    assert_eq!(answer.reply[..2], data[..2]);
    assert!(answer.reply[2] & 0x80 != 0, "a reply says that it is one");
    assert!(reply.answers.len() <= 1);
    assert!(
        answer.reply.len() <= data.len() + 64,
        "replies do not amplify"
    );
}

/// A TLS connection that begins with these bytes ends.
pub fn client_hello(data: &[u8]) {
    let mut bytes = vec![0x16];
    bytes.extend_from_slice(data);
    Door::shared().say(&bytes);
}

/// Whatever these bytes are as HTTP/1, every answer is a refusal.
pub fn http1(data: &[u8]) {
    // Beginning like TLS or HTTP/2 is for the other targets.
    if matches!(data.first(), None | Some(0x16)) || data.starts_with(b"PRI") {
        return;
    }
    let heard = Door::shared().say(data);
    assert!(
        heard.is_empty() || heard.starts_with(b"HTTP/1."),
        "{:?}",
        heard.escape_ascii().to_string()
    );
    let status = heard.get(9..12).unwrap_or(b"400");
    assert!(
        matches!(status[0], b'4' | b'5'),
        "{}",
        status.escape_ascii()
    );
}

/// A client that speaks HTTP/2 at once and sends these bytes as frames gets no success.
pub fn http2(data: &[u8]) {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(data);
    Door::shared().say(&bytes);
}

/// A running proxy, for all inputs: what one leaves behind may trip the next.
struct Door {
    address: SocketAddr,
    allowed: Arc<AtomicU64>,
    panics: Arc<AtomicU64>,
    _proxy: Proxy,
    _runtime: Runtime,
}

impl Door {
    fn shared() -> &'static Self {
        static DOOR: OnceLock<Door> = OnceLock::new();
        DOOR.get_or_init(Self::start)
    }

    fn start() -> Self {
        let panics = count_panics();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.thread_name(THREADS).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let sockets = Sockets {
            http: bind(),
            https: bind(),
            dns_tcp: bind(),
            dns_udp: udp,
        };
        let address = sockets.http.local_addr().expect("an address");
        let mut settings = Settings::new(Ipv4Addr::LOCALHOST, Allowlist::default());
        settings.limits = Limits {
            header_time: PATIENCE / 4,
            handshake_time: PATIENCE / 4,
            idle_time: PATIENCE / 4,
            ..Limits::default()
        };
        let allowed = Arc::<AtomicU64>::default();
        let count = Arc::clone(&allowed);
        settings.on_record = Some(Arc::new(move |record: &Record| {
            let Event::Request(request) = &record.event else {
                return;
            };
            if matches!(
                request.verdict,
                Verdict::Allowed { .. } | Verdict::Failed { .. }
            ) {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }));
        let authority = Arc::new(CertificateAuthority::generate().expect("an authority"));
        let started = runtime.block_on(Proxy::start(sockets, settings, authority));
        let proxy = started.expect("the proxy starts");
        Self {
            address,
            allowed,
            panics,
            _proxy: proxy,
            _runtime: runtime,
        }
    }

    /// Sends the bytes and nothing after them; returns what comes back until the proxy hangs up,
    /// which it must.
    fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("the proxy accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // The proxy may hang up before it has heard everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut heard = Vec::new();
        let ended = stream.read_to_end(&mut heard);
        let gave_up = matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock);
        assert!(!gave_up, "the connection does not end");
        assert_eq!(
            self.allowed.load(Ordering::SeqCst),
            0,
            "a request was allowed"
        );
        let panics = self.panics.load(Ordering::SeqCst);
        assert_eq!(panics, 0, "the proxy panicked");
        heard
    }
}

/// The runtime keeps a panic of one task from the others, and would keep it from us.
fn count_panics() -> Arc<AtomicU64> {
    let panics = Arc::<AtomicU64>::default();
    let (count, before) = (Arc::clone(&panics), panic::take_hook());
    panic::set_hook(Box::new(move |what| {
        if thread::current().name() == Some(THREADS) {
            count.fetch_add(1, Ordering::SeqCst);
        }
        before(what);
    }));
    panics
}

/// The name of the proxy's threads.
const THREADS: &str = "fuzzed-proxy";

/// Longer than any limit of the proxy under test.
const PATIENCE: Duration = Duration::from_secs(8);

pub(crate) const QUESTIONS: &[&[u8]] = &[
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x1c\0\x01",
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x01\0\x01",
    b"\0\0\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\xff\0\x01\0\0\x29\x10\0\0\0\0\0\0\0",
    b"\0\0\x28\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01",
];

pub(crate) const HELLOS: &[&[u8]] = &[
    b"\x03\x01\0\x05\x01\0\0\x01\x03",
    b"\x03\x03\x40\0\x01\0\x3f\xfc",
    b"\x03\x01\0\x6a\x01\0\0\x66\x03\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\x13\x01\x13\x02\x01\0\0\x39\0\0\0\x0d\0\x0b\0\0\x08api.test\0\x2b\0\x03\x02\x03\x04\0\x0d\0\x06\0\x04\x04\x03\x08\x04\0\x0a\0\x04\0\x02\0\x1d\0\x10\0\x05\0\x03\x02h2\0\x33\0\x02\0\0",
];

pub(crate) const REQUESTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx: y\r\n\r\n",
    b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
    b"GET /s HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n",
    b"GET /%2e%2e/ HTTP/1.0\nHost: a.example\nHost: b.example\n\n",
];

pub(crate) const FRAMES: &[&[u8]] = &[
    // HEADERS that end stream 1: GET http a.example /
    b"\0\0\x0e\x01\x05\0\0\0\x01\x82\x86\x84\x41\x09a.example\x40",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\x08\x06\0\0\0\0\0abcdefgh",
    b"\0\0\x05\x01\x01\0\0\0\x01\x82\x86\x84\xff\xff\0\0\x04\x09\x04\0\0\0\x01\x82\x86\x84\x41",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0\0\0\x04\x08\0\0\0\0\0\0\0\0\x01",
];
