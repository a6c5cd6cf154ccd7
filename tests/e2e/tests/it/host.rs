//! The host as a container must not see it: a service on every address, and the addresses.

use std::{
    io::Write,
    net::{TcpListener, UdpSocket},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// A service of the host on every address it has, and how often it was reached.
pub(crate) fn host_service() -> (u16, Arc<AtomicU32>) {
    let heard = Arc::new(AtomicU32::new(0));
    let tcp = TcpListener::bind("[::]:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("::", port)).unwrap();
    let counter = Arc::clone(&heard);
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            counter.fetch_add(1, Ordering::SeqCst);
            drop(stream.write_all(b"reached\n"));
        }
    });
    let counter = Arc::clone(&heard);
    thread::spawn(move || {
        while udp.recv(&mut [0; 64]).is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, heard)
}

/// Every address of the host at this moment but loopback ones.
pub(crate) fn host_addresses() -> Vec<String> {
    let output = Command::new("ip")
        .args(["-o", "addr", "show"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(3));
    words
        .filter_map(|word| word.split('/').next())
        .filter(|address| !address.starts_with("127.") && *address != "::1")
        .map(str::to_owned)
        .collect()
}
