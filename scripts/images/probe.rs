//! The one program of the scratch image: shows what a container without shell or libc sees.
//!
//! Standard library only and linked statically; addresses are literal, because nothing here resolves names.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    process::ExitCode,
    thread,
    time::Duration,
};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match *words.as_slice() {
        ["args", ref rest @ ..] => print_lines(rest.iter().copied()),
        ["env"] => print_lines(env::vars().map(|(name, value)| format!("{name}={value}"))),
        ["cat", path] => fs::read_to_string(path).map(|text| print!("{text}")),
        ["copy"] => io::copy(&mut io::stdin(), &mut io::stdout()).map(drop),
        ["tcp", address] => tcp(address),
        ["udp", address] => udp(address),
        ["http", address, host, path] => http(address, host, path),
        ["sleep", seconds] => sleep(seconds),
        ["exit", code] => match code.parse::<u8>() {
            Ok(code) => return ExitCode::from(code),
            Err(_) => Err(invalid(code)),
        },
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_lines<T: AsRef<str>>(lines: impl Iterator<Item = T>) -> io::Result<()> {
    lines.for_each(|line| println!("{}", line.as_ref()));
    Ok(())
}

fn tcp(address: &str) -> io::Result<()> {
    let stream = TcpStream::connect_timeout(&parse(address)?, PATIENCE)?;
    println!("connected to {}", stream.peer_addr()?);
    Ok(())
}

fn udp(address: &str) -> io::Result<()> {
    let peer = parse(address)?;
    let any = if peer.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send_to(b"probe", peer)?;
    let (bytes, from) = socket.recv_from(&mut [0; 512])?;
    println!("{bytes} bytes from {from}");
    Ok(())
}

fn http(address: &str, host: &str, path: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&parse(address)?, PATIENCE)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    io::stdout().write_all(&answer)
}

fn sleep(seconds: &str) -> io::Result<()> {
    let seconds = seconds.parse().map_err(|_| invalid(seconds))?;
    println!("sleeping");
    thread::sleep(Duration::from_secs(seconds));
    Ok(())
}

fn parse(address: &str) -> io::Result<SocketAddr> {
    address.parse().map_err(|_| invalid(address))
}

fn invalid(word: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("`{word}` is not valid here"),
    )
}

/// Long enough for any local answer, short enough for a test of what must not answer.
const PATIENCE: Duration = Duration::from_secs(2);

const USAGE: &str = "usage: probe args WORD... | env | cat FILE | copy | tcp IP:PORT | udp IP:PORT \
                     | http IP:PORT HOST PATH | sleep SECONDS | exit CODE";
