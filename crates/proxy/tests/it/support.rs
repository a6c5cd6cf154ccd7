//! Starts a proxy, an origin and a name server, and runs other people's clients against them.

pub(crate) mod client;
pub(crate) mod echo;
mod names;
pub(crate) mod origin;
pub(crate) mod secrets;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::{Path, PathBuf},
    process::Output,
    sync::{Arc, Mutex},
    time::Duration,
};

use cordon_policy::Allowlist;
use cordon_proxy::{
    CertificateAuthority, Event, Limits, LogTarget, Proxy, Record, RequestRecord, Settings,
    Sockets, Summary, Upstream,
};
use cordon_secrets::SecretReplacements;
use rustls::pki_types::CertificateDer;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) use origin::Origin;

/// A proxy under test. Names below `.test` resolve to the origin's machine.
#[derive(Debug)]
pub(crate) struct Bench {
    proxy: Proxy,
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    pub(crate) dns: SocketAddr,
    pub(crate) directory: TempDir,
    records: Arc<Mutex<Vec<Record>>>,
}

/// How to start one.
pub(crate) struct Plan {
    pub(crate) allowlist: String,
    pub(crate) limits: Limits,
    pub(crate) upstream: Upstream,
    /// Where the log goes, if not into the directory of the bench.
    pub(crate) log: Option<LogTarget>,
    pub(crate) replacements: SecretReplacements,
    /// Where requests over TLS are taken, if not just anywhere.
    pub(crate) https: Option<TcpListener>,
}

impl Plan {
    /// Allows `api.test` and everything below it, on the ports of the origin.
    pub(crate) fn new(origin: &Origin) -> Self {
        let ports = format!("[{}, {}, 80, 443]", origin.http.port(), origin.https.port());
        let allowlist = format!(
            "domains:\n\
             - {{host: api.test, ports: {ports}, private_addresses: true}}\n\
             - {{host: '*.api.test', ports: {ports}, private_addresses: true}}\n"
        );
        let upstream = Upstream {
            dns_servers: vec![names::serve()],
            extra_roots: vec![origin.root.clone()],
            ..Upstream::default()
        };
        Self {
            allowlist,
            limits: Limits::default(),
            upstream,
            log: None,
            replacements: SecretReplacements::default(),
            https: None,
        }
    }

    /// Allows `api.test` and everything below it on one port, where somebody shows a certificate of this root.
    pub(crate) fn reaching(
        port: u16,
        root: &CertificateDer<'static>,
        replacements: &SecretReplacements,
    ) -> Self {
        let allowlist = format!(
            "domains:\n\
             - {{host: api.test, ports: [{port}], private_addresses: true}}\n\
             - {{host: '*.api.test', ports: [{port}], private_addresses: true}}\n"
        );
        let upstream = Upstream {
            dns_servers: vec![names::serve()],
            extra_roots: vec![root.clone()],
            ..Upstream::default()
        };
        let (limits, replacements) = (Limits::default(), replacements.clone());
        Self {
            allowlist,
            limits,
            upstream,
            log: None,
            replacements,
            https: None,
        }
    }

    pub(crate) async fn start(self) -> Bench {
        self.try_start().await.unwrap()
    }

    pub(crate) async fn try_start(self) -> Result<Bench, cordon_proxy::Error> {
        self.start_as(Arc::new(CertificateAuthority::generate()?))
            .await
    }

    pub(crate) async fn start_with(self, authority: Arc<CertificateAuthority>) -> Bench {
        self.start_as(authority).await.unwrap()
    }

    async fn start_as(
        self,
        authority: Arc<CertificateAuthority>,
    ) -> Result<Bench, cordon_proxy::Error> {
        let directory = tempfile::tempdir().unwrap();
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (http, https) = (bind(), self.https.unwrap_or_else(bind));
        let (dns_tcp, dns_udp) = loop {
            let tcp = bind();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
                break (tcp, udp);
            }
        };
        let addresses = [&http, &https, &dns_tcp].map(|socket| socket.local_addr().unwrap());
        std::fs::write(directory.path().join("ca.pem"), authority.certificate_pem()).unwrap();
        let records = Arc::<Mutex<Vec<Record>>>::default();
        let mut settings = Settings::new(DOOR, Allowlist::from_yaml(&self.allowlist).unwrap());
        settings.replacements = self.replacements;
        settings.upstream = self.upstream;
        settings.limits = self.limits;
        settings.log = self
            .log
            .unwrap_or_else(|| LogTarget::in_directory(directory.path()));
        let sink = Arc::clone(&records);
        settings.on_record = Some(Arc::new(move |record| {
            sink.lock().unwrap().push(record.clone())
        }));
        let proxy = Proxy::start(
            Sockets {
                http,
                https,
                dns_tcp,
                dns_udp,
            },
            settings,
            authority,
        )
        .await?;
        let [http, https, dns] = addresses;
        Ok(Bench {
            proxy,
            http,
            https,
            dns,
            directory,
            records,
        })
    }
}

impl Bench {
    /// The usual proxy.
    pub(crate) async fn start(origin: &Origin) -> Self {
        Plan::new(origin).start().await
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Runs curl against a URL, whatever its host and port, through the proxy. Returns what it wrote
    /// to stdout, which ends with the status and the protocol version.
    pub(crate) async fn curl(&self, arguments: &[&str]) -> String {
        let output = self.curl_output(arguments).await;
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) async fn curl_output(&self, arguments: &[&str]) -> Output {
        let mut all = vec![
            "--silent".to_owned(),
            "--show-error".to_owned(),
            "--max-time".to_owned(),
            "30".to_owned(),
            "--cacert".to_owned(),
            self.ca().display().to_string(),
            "--write-out".to_owned(),
            "\n%{http_code} %{http_version}".to_owned(),
        ];
        let tls = arguments
            .iter()
            .any(|argument| argument.starts_with("https:"));
        let door = if tls { self.https } else { self.http };
        all.extend(["--connect-to".to_owned(), format!("::{door}")]);
        all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        run("curl", &all).await
    }

    /// Sends bytes as they are and reads until the proxy closes or nothing more comes.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        read_all(&mut stream).await
    }

    /// Waits until that many requests are recorded, and a little longer for one too many.
    pub(crate) async fn requests(&self, count: usize) -> Vec<RequestRecord> {
        for _ in 0..500 {
            if self.seen_requests().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        let seen = self.seen_requests();
        assert_eq!(seen.len(), count, "{seen:#?}");
        seen
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }

    fn seen_requests(&self) -> Vec<RequestRecord> {
        let requests = self
            .records()
            .into_iter()
            .filter_map(|record| match record.event {
                Event::Request(request) => Some(*request),
                _ => None,
            });
        requests.collect()
    }

    /// The lines of the text log without their detail.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.records().iter().map(Record::line).collect()
    }

    /// Stops the proxy; the directory stays.
    pub(crate) async fn stop(self) -> (Summary, TempDir) {
        (self.proxy.stop().await, self.directory)
    }
}

/// Waits for something that is sure to come.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .unwrap();
}

/// Reads until the end, or until nothing came for a few seconds.
pub(crate) async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while let Ok(Ok(length @ 1..)) =
        tokio::time::timeout(Duration::from_secs(3), stream.read(&mut buffer)).await
    {
        answer.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// Runs a program to its end.
#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
pub(crate) async fn run<S: AsRef<std::ffi::OsStr>>(program: &str, arguments: &[S]) -> Output {
    let running = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    running
        .await
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}"))
}

/// Standard output of a program that must succeed.
pub(crate) async fn stdout<S: AsRef<std::ffi::OsStr>>(program: &str, arguments: &[S]) -> String {
    let output = run(program, arguments).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Contents of a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The address of every name, as the workload sees it.
pub(crate) const DOOR: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);
