use super::*;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 1);

/// A query with id 0x1234 and the flag RD.
fn query(labels: &[&[u8]], record_type: u16, extra: &[u8]) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(*label);
    }
    message.push(0);
    message.extend(record_type.to_be_bytes());
    message.extend([0, 1]);
    message.extend(extra);
    message
}

fn result(message: &[u8]) -> DnsResult {
    answer(message, ADDRESS).unwrap().record.result
}

#[test]
fn an_a_question_gets_the_address_and_keeps_its_spelling() {
    let message = query(&[b"wWw", b"example"], 1, &[]);
    let answer = answer(&message, ADDRESS).unwrap();
    let mut expected = message;
    expected[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
    expected.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 77, 0, 1]);
    assert_eq!(answer.reply, expected);
    let record = DnsRecord {
        name: "wWw.example".to_owned(),
        record_type: 1,
        result: DnsResult::Address(ADDRESS),
    };
    assert_eq!(answer.record, record);
}

#[test]
fn other_types_exist_without_data() {
    for record_type in [2, 5, 6, 15, 16, 28, 33, 64, 65, 255, 257, 65280] {
        let message = query(&[b"example", b"com"], record_type, &[]);
        let answer = answer(&message, ADDRESS).unwrap();
        assert_eq!(answer.record.result, DnsResult::NoData);
        assert_eq!(answer.record.record_type, record_type);
        assert_eq!(answer.reply[2..12], [0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(answer.reply[12..], message[12..]);
    }
}

#[test]
fn edns_is_answered_with_edns() {
    let mut message = query(&[b"a"], 1, &[0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 0]);
    message[11] = 1;
    let reply = answer(&message, ADDRESS).unwrap().reply;
    assert_eq!(reply[11], 1);
    assert_eq!(
        reply[reply.len() - 11..],
        [0, 0, 41, 4, 0xd0, 0, 0, 0x80, 0, 0, 0]
    );

    let version = message.len() - 5;
    message[version] = 1;
    let answer = answer(&message, ADDRESS).unwrap();
    assert_eq!(answer.record.result, DnsResult::NotImplemented);
    assert_eq!(answer.reply[3] & 0x0f, 0);
    assert_eq!(
        answer.reply[answer.reply.len() - 6],
        1,
        "BADVERS is 16, its high bits in OPT"
    );
}

#[test]
fn what_cannot_be_read_is_a_format_error() {
    let good = query(&[b"example", b"com"], 1, &[]);
    for cut in HEADER..good.len() {
        assert_eq!(result(&good[..cut]), DnsResult::Malformed, "cut at {cut}");
    }
    let mut pointer = query(&[], 1, &[]);
    pointer.splice(12..13, [0xc0, 0]);
    let mut two = query(&[b"a"], 1, &good[12..]);
    two[5] = 2;
    let mut none = good;
    none[5] = 0;
    for message in [pointer, two, none] {
        let answer = answer(&message, ADDRESS).unwrap();
        assert_eq!(answer.record.result, DnsResult::Malformed);
        assert_eq!(
            answer.reply,
            [0x12, 0x34, 0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}

#[test]
fn replies_and_fragments_get_no_answer() {
    let mut reply = query(&[b"a"], 1, &[]);
    reply[2] |= 0x80;
    assert_eq!(answer(&reply, ADDRESS), None);
    assert_eq!(answer(&reply[..11], ADDRESS), None);
    assert_eq!(answer(b"", ADDRESS), None);
}

#[test]
fn other_opcodes_are_not_implemented() {
    let mut update = query(&[b"a"], 6, &[]);
    update[2] = 5 << 3;
    assert_eq!(result(&update), DnsResult::NotImplemented);
}

#[test]
fn a_label_cannot_forge_a_log_line() {
    let answer = answer(
        &query(
            &[b"x\nALLOWED GET https://evil -> 200", b"\x1b[2J", b"a.b"],
            1,
            &[],
        ),
        ADDRESS,
    );
    assert_eq!(
        answer.unwrap().record.name,
        r"x\x0aALLOWED\x20GET\x20https://evil\x20->\x20200.\x1b[2J.a\x2eb"
    );
}
