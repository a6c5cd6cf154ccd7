//! botocore with surrogates, against stand-ins that believe real signatures only.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use cordon_policy::Allowlist;
use cordon_proxy::{CertificateAuthority, Document, Settings, Verdict};
use cordon_secrets::{PreparedSecrets, prepare_secrets};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};

use crate::support::{
    Plan,
    secrets::{KEY_ID, SECRET_KEY, SESSION_TOKEN, assert_absent, aws},
};

#[tokio::test(flavor = "multi_thread")]
async fn botocore_works_with_long_term_surrogates() {
    calls(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn botocore_works_with_session_surrogates() {
    calls(Some(SESSION_TOKEN)).await;
}

async fn calls(session_token: Option<&str>) {
    let prepared = prepare_secrets(Vec::new(), vec![aws(session_token)]).unwrap();
    let standin = StandIn::start(&prepared, session_token);
    let plan = Plan::reaching(standin.port, &standin.root, &prepared.replacements);
    let bench = plan.start().await;
    let input = standin.input(&prepared, bench.https, &bench.ca(), true, 8);
    let calls = tokio::task::spawn_blocking(move || python("calls.py", &input));
    assert_eq!(calls.await.unwrap(), (true, "done\n".to_owned()));
    let lines = bench.lines();
    assert!(lines.len() > 20, "{lines:#?}");
    for line in &lines[1..] {
        assert!(
            line.contains("-> 200 [masked: 1] [region: eu-west-1]"),
            "{line}"
        );
        for value in [SECRET_KEY, SESSION_TOKEN] {
            assert_absent(value, line);
        }
    }
    for record in bench.requests(lines.len() - 1).await {
        assert!(
            matches!(record.verdict, Verdict::Allowed { .. }) && record.broken.is_none(),
            "{record:?}"
        );
    }
}

#[test]
fn the_stand_ins_refuse_surrogates() {
    let prepared = prepare_secrets(Vec::new(), vec![aws(None)]).unwrap();
    let standin = StandIn::start(&prepared, None);
    let door = SocketAddr::from((Ipv4Addr::LOCALHOST, standin.port));
    let ca = standin.directory.path().join("cert.pem");
    let input = standin.input(&prepared, door, &ca, true, 1);
    let (succeeded, said) = python("calls.py", &input);
    assert!(
        !succeeded && said.contains("SignatureDoesNotMatch"),
        "{said}"
    );
}

/// In a process of its own, whose memory nobody else uses.
#[test]
fn uploads_of_any_size_take_little_memory() {
    let prepared = prepare_secrets(Vec::new(), vec![aws(Some(SESSION_TOKEN))]).unwrap();
    let standin = StandIn::start(&prepared, Some(SESSION_TOKEN));
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 96 | (high & 0x1f), low, 1);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let Plan {
        allowlist,
        upstream,
        limits,
        replacements,
        ..
    } = Plan::reaching(standin.port, &standin.root, &prepared.replacements);
    let settings = Settings {
        replacements,
        upstream,
        limits,
        ..Settings::new(address, Allowlist::from_yaml(&allowlist).unwrap())
    };
    let authority = CertificateAuthority::generate().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let ca = directory.path().join("ca.pem");
    fs::write(&ca, authority.certificate_pem()).unwrap();

    #[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
    let mut proxy = spawn(Command::new(env!("CARGO_BIN_EXE_cordon-proxy")));
    let mut orders = proxy.stdin.take().unwrap();
    orders
        .write_all(&Document::line(&settings, &authority, None).unwrap())
        .unwrap();
    let mut records = BufReader::new(proxy.stdout.take().unwrap()).lines();
    let ready = records
        .by_ref()
        .map_while(Result::ok)
        .find(|line| line == "ready");
    assert!(
        ready.is_some(),
        "the ports 53, 80 and 443 of {address} take root"
    );
    let drained = std::thread::spawn(move || records.map_while(Result::ok).count());

    let mebibytes = env::var("CORDON_TEST_UPLOAD_MIB").map_or(64, |text| text.parse().unwrap());
    let input = standin.input(&prepared, (address, 443).into(), &ca, false, mebibytes);
    assert_eq!(python("calls.py", &input), (true, "done\n".to_owned()));
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(peak < 64 * 1024, "the proxy took {peak} kB");
    drop(orders);
    assert!(proxy.wait().unwrap().success());
    assert!(drained.join().unwrap() >= 2);
}

/// S3, DynamoDB and API Gateway in Python; they end with this.
struct StandIn {
    port: u16,
    root: CertificateDer<'static>,
    directory: tempfile::TempDir,
    _process: Child,
    _input: ChildStdin,
}

impl StandIn {
    fn start(prepared: &PreparedSecrets, session_token: Option<&str>) -> Self {
        let names = ["s3.api.test", "dynamodb.api.test", "gateway.api.test"].map(str::to_owned);
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (
            directory.path().join("cert.pem"),
            directory.path().join("key.pem"),
        );
        fs::write(&certificate, certified.cert.pem()).unwrap();
        fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        let settings = json!({
            "certificate": certificate,
            "key": key,
            "credentials": {
                "access_key_id": KEY_ID,
                "secret_access_key": SECRET_KEY,
                "session_token": session_token,
            },
            "surrogates": prepared.env.values().collect::<Vec<_>>(),
        });
        let mut process = spawn(script("standin.py"));
        let mut input = process.stdin.take().unwrap();
        writeln!(input, "{settings}").unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        Self {
            port: port.trim().parse().unwrap(),
            root: certified.cert.der().clone(),
            directory,
            _process: process,
            _input: input,
        }
    }

    fn input(
        &self,
        prepared: &PreparedSecrets,
        door: SocketAddr,
        ca: &Path,
        all: bool,
        mebibytes: u32,
    ) -> Value {
        json!({
            "door": (door.ip().to_string(), door.port()),
            "port": self.port,
            "ca": ca,
            "access_key_id": prepared.env["AWS_ACCESS_KEY_ID"],
            "secret_access_key": prepared.env["AWS_SECRET_ACCESS_KEY"],
            "session_token": prepared.env.get("AWS_SESSION_TOKEN"),
            "all": all,
            "upload_mib": mebibytes,
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "tests drive real programs")]
fn script(name: &str) -> Command {
    let interpreter = env::var("CORDON_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let here: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/botocore");
    let mut command = Command::new(interpreter);
    command
        .arg(here.join(name))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn spawn(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a script to its end. Gives whether it succeeded, and what it said.
fn python(name: &str, input: &Value) -> (bool, String) {
    let mut command = script(name);
    command.stderr(Stdio::piped());
    let mut process = spawn(command);
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}
