//! Answers every DNS question out of its own head.
//!
//! Each name has the proxy's address and nothing else. No question ever leaves the machine, so DNS
//! carries no data out; what the workload may reach is decided when it sends a request.

mod serve;

use std::net::Ipv4Addr;

use hickory_proto::{
    op::{Edns, Message, MessageType, Metadata, OpCode, Query, ResponseCode},
    rr::{Name, RData, Record, RecordType, rdata::A},
    serialize::binary::{BinDecodable, BinEncodable},
};

use crate::log::{DnsRecord, DnsResult, EscapedLabel};

pub(crate) use serve::{Responder, serve_tcp, serve_udp};

/// A reply, and what the log says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The message to send back.
    pub reply: Vec<u8>,
    /// The question and its result.
    pub record: DnsRecord,
}

/// Answers one message. None where no answer is due: the message is too short to have an id, or is
/// itself a reply.
///
/// ```
/// use cordon_proxy::{DnsResult, answer};
///
/// let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03com\0\0\x1c\0\x01";
/// let answer = answer(query, [10, 0, 0, 1].into()).unwrap();
/// assert_eq!(answer.record.name, "example.com");
/// assert_eq!(answer.record.result, DnsResult::NoData); // AAAA: the name exists, without an address
/// ```
pub fn answer(query: &[u8], address: Ipv4Addr) -> Option<Answer> {
    let header: &[u8; HEADER] = query.first_chunk()?;
    if header[2] & QR != 0 {
        return None;
    }
    if header[2] & OPCODE != 0 {
        return Some(refuse(
            header,
            ResponseCode::NotImp,
            DnsResult::NotImplemented,
        ));
    }
    match parse(query) {
        Some((request, question)) => reply(&request, question, address)
            .or_else(|| Some(refuse(header, ResponseCode::FormErr, DnsResult::Malformed))),
        None => Some(refuse(header, ResponseCode::FormErr, DnsResult::Malformed)),
    }
}

/// Reads a message with exactly one question that is spelled without compression.
fn parse(query: &[u8]) -> Option<(Message, Query)> {
    let mut request = Message::from_bytes(query).ok()?;
    let question = request.queries.pop()?;
    let spelled = question.name().to_bytes().ok()?;
    let plain = query.get(HEADER..)?.starts_with(&spelled);
    (plain && request.queries.is_empty()).then_some((request, question))
}

fn reply(request: &Message, question: Query, address: Ipv4Addr) -> Option<Answer> {
    let mut message = Message::new(request.metadata.id, MessageType::Response, OpCode::Query);
    message.metadata = Metadata::response_from_request(&request.metadata);
    message.metadata.recursion_available = true;
    // Neither checked nor checkable: there is no DNSSEC behind this address.
    message.metadata.checking_disabled = false;

    let name = question.name().clone();
    let record_type = question.query_type();
    let mut result = DnsResult::NoData;
    let newer_edns = request.edns.as_ref().is_some_and(|edns| edns.version() > 0);
    if newer_edns {
        message.metadata.response_code = ResponseCode::BADVERS;
        result = DnsResult::NotImplemented;
    } else if record_type == RecordType::A {
        message.add_answer(Record::from_rdata(name.clone(), TTL, RData::A(A(address))));
        result = DnsResult::Address(address);
    }
    message.add_query(question);
    if let Some(asked) = &request.edns {
        let mut edns = Edns::new();
        edns.set_max_payload(UDP_PAYLOAD)
            .set_version(0)
            .set_dnssec_ok(asked.flags().dnssec_ok);
        message.set_edns(edns);
    }
    let record = DnsRecord {
        name: text(&name),
        record_type: record_type.into(),
        result,
    };
    Some(Answer {
        reply: message.to_vec().ok()?,
        record,
    })
}

/// A reply of a header only, with the id, the opcode and the wish for recursion of the message.
fn refuse(header: &[u8; HEADER], code: ResponseCode, result: DnsResult) -> Answer {
    let mut reply = vec![0; HEADER];
    reply[..2].copy_from_slice(&header[..2]);
    reply[2] = QR | header[2] & (OPCODE | RD);
    reply[3] = RA | code.low();
    let record = DnsRecord {
        name: String::new(),
        record_type: 0,
        result,
    };
    Answer { reply, record }
}

/// The name without its last dot; no label can look like two.
fn text(name: &Name) -> String {
    let labels = name.iter().map(|label| EscapedLabel(label).to_string());
    Vec::from_iter(labels).join(".")
}

/// Length of the fixed part of a message.
const HEADER: usize = 12;

/// Bits of the third and fourth byte of a message.
const QR: u8 = 0x80;
const OPCODE: u8 = 0x78;
const RD: u8 = 0x01;
const RA: u8 = 0x80;

/// Short, so that a resolver's cache outlives no run; the answer never changes within one.
const TTL: u32 = 60;

/// What fits into a datagram on every network. Our replies are far smaller.
const UDP_PAYLOAD: u16 = 1232;

#[cfg(test)]
mod tests;
