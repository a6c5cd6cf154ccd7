//! What a container looks like from inside: `cordon-init look NAME DIRECTORY` tells it line by line.
//!
//! It judges nothing, for it runs where nothing is to be believed but what was tried; whoever started it
//! does. NAME is asked of the name server and then for a page; a file in DIRECTORY is tried to be made.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    path::Path,
    time::Duration,
};

/// Tells everything; what cannot be found out is told as such.
pub(crate) fn look(name: &OsStr, directory: &OsStr) -> io::Result<()> {
    let name = name.to_string_lossy();
    let mut out = io::stdout().lock();
    for interface in interfaces()? {
        writeln!(out, "interface {interface}")?;
    }
    for route in routes() {
        writeln!(out, "route {route}")?;
    }
    for (field, value) in status()? {
        writeln!(out, "{field} {value}")?;
    }
    let outside = SocketAddr::from((OUTSIDE, 80));
    let dialled = TcpStream::connect_timeout(&outside, PATIENCE).map(drop);
    writeln!(out, "outside-tcp {}", outcome(dialled))?;
    let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"?", outside));
    writeln!(out, "outside-udp {}", outcome(sent.map(drop)))?;
    match resolve(&name) {
        Ok(address) => {
            writeln!(out, "address {address}")?;
            match ask(address, &name) {
                Ok(status) => writeln!(out, "answer {status}")?,
                Err(error) => writeln!(out, "answer-failed {error}")?,
            }
        }
        Err(error) => writeln!(out, "address-failed {error}")?,
    }
    let path = Path::new(directory).join("cordon-look");
    let made = File::create(&path).map(drop);
    drop(fs::remove_file(&path));
    writeln!(out, "rules {}", outcome(made))
}

/// The number of an error; 0 where there was none.
fn outcome(result: io::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) if error.kind() == io::ErrorKind::TimedOut => TIMED_OUT,
        Err(error) => error.raw_os_error().unwrap_or(-1),
    }
}

fn interfaces() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/net/dev")?;
    // Two lines of heads, then a line for each.
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    Ok(names.map(|(name, _)| name.trim().to_owned()).collect())
}

/// Interface, destination and gateway of every route that is not loopback's own.
fn routes() -> Vec<String> {
    // A kernel without that family has no such file, and no such routes.
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut routes = Vec::new();
    for line in read("/proc/net/route").lines().skip(1) {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [interface, destination, gateway, ..] = fields[..] {
            routes.push(format!("{interface} {destination} {gateway}"));
        }
    }
    for line in read("/proc/net/ipv6_route").lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if let [destination, _, _, _, gateway, .., interface] = fields[..]
            && interface != "lo"
        {
            routes.push(format!("{interface} {destination} {gateway}"));
        }
    }
    routes
}

/// What the kernel lets this process do.
fn status() -> io::Result<Vec<(&'static str, String)>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("unknown", str::trim).to_owned()
    };
    Ok(vec![
        ("bounding", field("CapBnd:")),
        ("effective", field("CapEff:")),
        ("no-new-privileges", field("NoNewPrivs:")),
        ("seccomp", field("Seccomp:")),
    ])
}

/// The address of a name, as the first name server of the container gives it.
fn resolve(name: &str) -> io::Result<Ipv4Addr> {
    let text = fs::read_to_string("/etc/resolv.conf")?;
    let server = text
        .lines()
        .find_map(|line| line.strip_prefix("nameserver ")?.trim().parse().ok());
    let server: IpAddr = server.ok_or_else(|| io::Error::other("there is no name server"))?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send_to(&question(name), (server, 53))?;
    let mut answer = [0; 512];
    let (size, _) = socket.recv_from(&mut answer)?;
    // The one record of the answer ends with the four bytes of its address.
    match &answer[..size] {
        [.., a, b, c, d] if size > 16 && answer[7] == 1 => Ok(Ipv4Addr::new(*a, *b, *c, *d)),
        _ => Err(io::Error::other("the name server gives no address")),
    }
}

/// One question for an address, as DNS writes it.
fn question(name: &str) -> Vec<u8> {
    let mut message = vec![0xC0, 0x4D, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    message
}

/// The status of a page of that name.
fn ask(address: Ipv4Addr, name: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((address, 80)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut head = [0; 64];
    let size = stream.read(&mut head)?;
    let head = String::from_utf8_lossy(&head[..size]);
    let status = head.split_whitespace().nth(1);
    let status = status.filter(|status| status.bytes().all(|byte| byte.is_ascii_digit()));
    let status = status.ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
    Ok(status.to_owned())
}

/// An address of documentation, which nobody has.
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Everything that answers here is on this machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// `ETIMEDOUT`, which the standard library also has without a number.
const TIMED_OUT: i32 = 110;
