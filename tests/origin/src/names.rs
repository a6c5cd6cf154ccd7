//! A name server that knows one answer.

use std::net::Ipv4Addr;

use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{RData, Record, RecordType, rdata::A},
};
use tokio::net::UdpSocket;

/// Answers every A question with the address, `missing.*` names with NXDOMAIN, and names that begin
/// with an address, such as `10-0-0-1.example.com`, with that address.
pub(crate) async fn answer(socket: UdpSocket, address: Ipv4Addr) {
    let mut packet = [0; 4096];
    while let Ok((size, client)) = socket.recv_from(&mut packet).await {
        let Some(reply) = reply(&packet[..size], address) else {
            continue;
        };
        drop(socket.send_to(&reply, client).await);
    }
}

fn reply(packet: &[u8], address: Ipv4Addr) -> Option<Vec<u8>> {
    let query = Message::from_vec(packet).ok()?;
    let question = query.queries.first()?.clone();
    let name = question.name().to_ascii();
    let mut response = Message::response(query.metadata.id, query.metadata.op_code);
    response.metadata.recursion_available = true;
    response.add_query(question.clone());
    if name.starts_with("missing.") {
        response.metadata.response_code = ResponseCode::NXDomain;
    } else if question.query_type() == RecordType::A {
        let written = name.split('.').next().unwrap_or_default().replace('-', ".");
        let address = written.parse().unwrap_or(address);
        response.add_answer(Record::from_rdata(
            question.name().clone(),
            60,
            RData::A(A(address)),
        ));
    }
    response.to_vec().ok()
}
