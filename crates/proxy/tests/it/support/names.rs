//! A name server for which every name is on this machine, save those that say otherwise.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::UdpSocket;

/// Serves until the test ends.
pub(crate) fn serve() -> SocketAddr {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let socket = UdpSocket::from_std(socket).unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            if let Some(reply) = reply(&buffer[..length]) {
                socket.send_to(&reply, peer).await.unwrap();
            }
        }
    });
    address
}

fn reply(query: &[u8]) -> Option<Vec<u8>> {
    let name = cordon_proxy::answer(query, Ipv4Addr::LOCALHOST)?
        .record
        .name
        .to_ascii_lowercase();
    let first = name.split('.').next().unwrap_or_default();
    let address = match first {
        "silent" => return None,
        "metadata" => Ipv4Addr::new(169, 254, 169, 254),
        "private" => Ipv4Addr::new(10, 1, 2, 3),
        _ => Ipv4Addr::LOCALHOST,
    };
    let mut reply = cordon_proxy::answer(query, address)?.reply;
    if first == "missing" {
        // NXDOMAIN, without the answer.
        reply[3] |= 3;
        reply[7] = 0;
        reply = [&reply[..12], &query[12..]].concat();
    }
    Some(reply)
}
