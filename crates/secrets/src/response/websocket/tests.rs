use proptest::prelude::*;

use super::*;
use crate::fixture::{GITHUB, github, header_map, host, prepared};

/// A frame without mask.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        0..126 => frame.push(payload.len() as u8),
        126..65536 => {
            frame.push(126);
            frame.extend((payload.len() as u16).to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

const TEXT: u8 = 0x01;
const BINARY: u8 = 0x02;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;

fn scrubber() -> (FrameScrubber, String) {
    let prepared = prepared(vec![github()]);
    let scrub = prepared
        .replacements
        .scrub(&host("api.github.com"))
        .unwrap();
    (scrub.frames(), prepared.env["GH_TOKEN"].clone())
}

fn push(scrubber: &mut FrameScrubber, bytes: Vec<u8>) -> Vec<u8> {
    scrubber.push(bytes.into()).unwrap().to_vec()
}

#[test]
fn a_value_in_a_message_comes_back_as_its_surrogate() {
    for length in [0, 60, 300, 70_000] {
        let (mut scrubber, surrogate) = scrubber();
        let payload = |token: &str| [token.as_bytes(), &vec![b'.'; length]].concat();
        let out = push(&mut scrubber, frame(BINARY | LAST, &payload(GITHUB)));
        assert!(out == frame(BINARY | LAST, &payload(&surrogate)));
        assert_eq!(scrubber.count(), 1);
    }
}

#[test]
fn a_value_across_fragments_comes_back_between_the_same_headers() {
    let (mut scrubber, surrogate) = scrubber();
    let frames = |token: &str| {
        let (a, rest) = token.as_bytes().split_at(7);
        let (b, c) = rest.split_at(20);
        [
            frame(TEXT, a),
            frame(PING, b"are you there"),
            frame(MORE, b""),
            frame(MORE, b),
            frame(LAST, c),
        ]
        .concat()
    };
    let out = push(
        &mut scrubber,
        [frames(GITHUB), frame(TEXT | LAST, b"next")].concat(),
    );
    assert_eq!(
        out,
        [frames(&surrogate), frame(TEXT | LAST, b"next")].concat()
    );
}

#[test]
fn the_end_of_a_message_is_not_held_back() {
    let (mut scrubber, _) = scrubber();
    let message = frame(TEXT | LAST, b"ghp_16C7");
    assert_eq!(push(&mut scrubber, message.clone()), message);
    // Neither is a fragment that cannot be the beginning of a value, nor a ping behind it.
    let fragments = [
        frame(TEXT, b"hello "),
        frame(PING, b""),
        frame(MORE, b"world."),
    ]
    .concat();
    assert_eq!(push(&mut scrubber, fragments.clone()), fragments);
}

#[test]
fn control_frames_are_scrubbed() {
    let (mut scrubber, surrogate) = scrubber();
    let reason = |token: &str| [&[3, 0xe8], token.as_bytes()].concat();
    let out = push(&mut scrubber, frame(CLOSE, &reason(GITHUB)));
    assert_eq!(out, frame(CLOSE, &reason(&surrogate)));
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    for (name, bytes) in [
        ("compressed", frame(TEXT | LAST | 0x40, b"x")),
        ("masked", vec![TEXT | LAST, 0x81, 1, 2, 3, 4, 5]),
        ("reserved opcode", frame(LAST | 0x3, b"x")),
        ("fragmented ping", frame(0x09, b"x")),
        ("long ping", frame(PING, &[0; 126])),
        ("continuation of nothing", frame(LAST, b"x")),
        (
            "message in a message",
            [frame(TEXT, b"x"), frame(TEXT, b"x")].concat(),
        ),
        ("endless", vec![TEXT | LAST, 127, 0xff, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let error = scrubber().0.push(bytes.into()).unwrap_err();
        assert!(matches!(error, ScrubError::Frame), "{name}");
    }
}

#[test]
fn frames_behind_an_undecided_value_do_not_pile_up() {
    let (mut scrubber, _) = scrubber();
    push(&mut scrubber, frame(TEXT, b"ghp_16C7"));
    let pings = frame(PING, &[0; 125]).repeat(1000);
    assert!(matches!(
        scrubber.push(pings.into()),
        Err(ScrubError::Backlog)
    ));
}

#[test]
fn what_waits_is_given_back_when_the_server_leaves() {
    let (mut scrubber, _) = scrubber();
    let bytes = [frame(TEXT, b"a ghp_16C7"), frame(PING, b"x")].concat();
    let mut out = push(&mut scrubber, bytes.clone());
    out.extend_from_slice(&scrubber.finish());
    assert_eq!(out, bytes);
}

#[test]
fn a_server_that_insists_on_an_extension_is_refused() {
    assert!(FrameScrubber::check_handshake(&header_map(&[("upgrade", "websocket")])).is_ok());
    let response = header_map(&[("sec-websocket-extensions", "permessage-deflate")]);
    assert!(FrameScrubber::check_handshake(&response).is_err());
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_frames(
        fragments in proptest::collection::vec(0_usize..40, 0..5),
        lengths in proptest::collection::vec(1_usize..50, 1..6),
    ) {
        let (mut scrubber, surrogate) = scrubber();
        let message = |token: &str| {
            let text = format!("x{token}y{token}");
            let mut rest = text.as_bytes();
            let mut bytes = Vec::new();
            let mut opcode = TEXT;
            for &length in &fragments {
                let (part, after) = rest.split_at(length.min(rest.len()));
                bytes.extend(frame(opcode, part));
                bytes.extend(frame(PING, token.as_bytes()));
                (rest, opcode) = (after, MORE);
            }
            bytes.extend(frame(opcode | LAST, rest));
            bytes
        };
        let sent = message(GITHUB).repeat(2);
        let mut out = Vec::new();
        let mut rest = &sent[..];
        for &length in lengths.iter().cycle() {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            out.extend(push(&mut scrubber, piece.to_vec()));
            prop_assert!(!String::from_utf8_lossy(&out).contains(GITHUB));
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(out, message(&surrogate).repeat(2));
    }
}
