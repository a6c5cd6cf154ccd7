use super::*;
use crate::{CredentialScope, Timestamp, hmac_key};

/// Key and day of the examples in the documentation of S3.
fn signer(seed: &str, stream: ChunkStream) -> ChunkSigner {
    let context = Context {
        algorithm: Algorithm::HmacSha256,
        timestamp: Timestamp::parse("20130524T000000Z").unwrap(),
        scope: CredentialScope::parse(Algorithm::HmacSha256, "20130524/us-east-1/s3/aws4_request")
            .unwrap(),
    };
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let key = SigningKey::from_hmac_key(hmac_key(secret, "20130524", "us-east-1", "s3"));
    ChunkSigner::new(key, context, seed.to_owned(), stream).unwrap()
}

fn plain(decoded_length: Option<u64>) -> ChunkStream {
    ChunkStream {
        decoded_length,
        trailers: None,
    }
}

fn with_trailers(decoded_length: Option<u64>, names: &[&str]) -> ChunkStream {
    ChunkStream {
        decoded_length,
        trailers: Some(names.iter().map(|&name| name.to_owned()).collect()),
    }
}

fn run(mut signer: ChunkSigner, input: &[u8]) -> Result<Vec<u8>, Error> {
    let mut output = Vec::new();
    signer.push(input, &mut output)?;
    signer.finish(&mut output)?;
    Ok(output)
}

fn chunk(data: &[u8], signature: &str) -> Vec<u8> {
    let head = format!("{:x};chunk-signature={signature}\r\n", data.len());
    [head.as_bytes(), data, b"\r\n"].concat()
}

#[test]
fn the_documented_upload_has_the_documented_signatures() {
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let data = [b'a'; 66_560];
    let expected = [
        chunk(
            &data[..65_536],
            "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        ),
        chunk(
            &data[65_536..],
            "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        ),
        chunk(
            b"",
            "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
        ),
    ]
    .concat();

    // However the client cut it, it comes out the same.
    for size in [66_560, 65_536, 8_192, 1] {
        let mut input: Vec<u8> = data
            .chunks(size)
            .flat_map(|part| chunk(part, "0f"))
            .collect();
        input.extend(chunk(b"", "0f"));
        let signer = signer(seed, plain(Some(66_560)));
        assert_eq!(signer.content_length(), Some(66_824));
        assert!(run(signer, &input).unwrap() == expected, "chunks of {size}");
    }
}

#[test]
fn the_documented_upload_with_a_trailer_has_the_documented_signatures() {
    let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
    let data = [b'a'; 66_560];
    let expected = [
        chunk(
            &data[..65_536],
            "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        ),
        chunk(
            &data[65_536..],
            "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        ),
        b"0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n\
          x-amz-checksum-crc32c:sOO8/Q==\r\n\
          x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\
          \r\n"
            .to_vec(),
    ]
    .concat();

    let mut start = chunk(&data, "00");
    start.extend_from_slice(b"0;chunk-signature=00\r\n");
    for trailers in [
        "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:00\r\n\r\n",
        "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:00\r\n",
        "X-Amz-Checksum-Crc32c: sOO8/Q==\n\r\nx-amz-trailer-signature:00\r\n\r\n\r\n",
    ] {
        let signer = signer(
            seed,
            with_trailers(Some(66_560), &["x-amz-checksum-crc32c"]),
        );
        assert_eq!(signer.content_length(), Some(expected.len() as u64));
        let output = run(signer, &[&start, trailers.as_bytes()].concat()).unwrap();
        assert!(output == expected, "{trailers:?}");
    }
}

#[test]
fn several_trailers_are_signed_in_order() {
    let seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";
    let data = [b'a'; 66_560];
    let mut input = chunk(&data, "00");
    input.extend_from_slice(
        b"0;chunk-signature=00\r\nthird:3rd\r\nfirst:1st\r\nsecond: 2nd \r\nx-amz-trailer-signature:00\r\n\r\n",
    );
    let names = ["first", "second", "third"];
    let signer = signer(seed, with_trailers(Some(66_560), &names));
    assert_eq!(signer.content_length(), None, "values of unknown length");
    let output = run(signer, &input).unwrap();
    let end = b"first:1st\r\nsecond:2nd\r\nthird:3rd\r\n\
        x-amz-trailer-signature:df5735bd9f3295cd9386572292562fefc93ba94e80a0a1ddcbd652c4e0a75e6c\r\n\r\n";
    assert!(output.ends_with(end));
}

#[test]
fn malformed_framing_ends_the_request_and_nothing_more_goes_out() {
    let cases: &[(&[u8], Framing)] = &[
        (b"not a chunk\r\n", Framing::ChunkHeader),
        (b";chunk-signature=00\r\n", Framing::ChunkHeader),
        (b"4\r\ntest\r\n", Framing::ChunkHeader),
        (b"4;chunk-signature=\r\n", Framing::ChunkHeader),
        (b"4;chunk-signature=xyz\r\n", Framing::ChunkHeader),
        (b"+4;chunk-signature=00\r\n", Framing::ChunkHeader),
        (b"4;chunk-signature=00\ntest", Framing::ChunkHeader),
        (
            b"11111111111111111;chunk-signature=00\r\n",
            Framing::ChunkHeader,
        ),
        (b"4;chunk-signature=00\r\ntestx", Framing::ChunkEnd),
        (b"4;chunk-signature=00\r\ntest\r4", Framing::ChunkEnd),
        (b"0;chunk-signature=00\r\n\r\n\r\n", Framing::DataAfterEnd),
        (b"0;chunk-signature=00\r\nmore", Framing::DataAfterEnd),
        (&[b'0'; MAX_CHUNK_LINE + 1], Framing::LineTooLong),
        (b"b;chunk-signature=00\r\n0123456789a", Framing::Length),
    ];
    for (input, framing) in cases {
        let mut signer = signer("00", plain(Some(10)));
        let mut output = b"before".to_vec();
        let error = Err(Error::Framing(*framing));
        let text = String::from_utf8_lossy(input);
        assert_eq!(signer.push(input, &mut output), error, "{text:?}");
        assert_eq!(signer.push(b"\r\n", &mut output), error, "{text:?}");
        assert_eq!(signer.finish(&mut output), error, "{text:?}");
        assert_eq!(output, b"before", "{text:?}");
    }
}

#[test]
fn a_body_that_ends_early_is_never_completed() {
    let whole = b"4;chunk-signature=00\r\ntest\r\n0;chunk-signature=00\r\n";
    for end in 0..whole.len() {
        assert_eq!(
            run(signer("00", plain(Some(4))), &whole[..end]),
            Err(Framing::Truncated.into()),
            "{end}"
        );
    }
    assert!(run(signer("00", plain(Some(4))), whole).is_ok());
    assert_eq!(
        run(signer("00", plain(Some(4))), &[whole, &b"\r"[..]].concat()),
        Err(Framing::Truncated.into())
    );
    assert_eq!(
        run(signer("00", plain(Some(5))), whole),
        Err(Framing::Length.into())
    );
}

#[test]
fn trailers_are_checked_before_they_are_signed() {
    for (trailers, framing) in [
        ("", Framing::TrailerSignature),
        ("\r\n", Framing::TrailerSignature),
        ("a:1\r\n\r\n", Framing::TrailerSignature),
        (
            "a:1\r\nx-amz-trailer-signature:\r\n",
            Framing::TrailerSignature,
        ),
        ("a:1\r\nx-amz-trailer-signature:00", Framing::Truncated),
        ("a\r\nx-amz-trailer-signature:00\r\n\r\n", Framing::Trailer),
        (
            "a b:1\r\nx-amz-trailer-signature:00\r\n\r\n",
            Framing::Trailer,
        ),
        (":1\r\nx-amz-trailer-signature:00\r\n\r\n", Framing::Trailer),
        (
            "a:\u{1}\r\nx-amz-trailer-signature:00\r\n\r\n",
            Framing::Trailer,
        ),
        (
            "a:1\r\nA:2\r\nx-amz-trailer-signature:00\r\n\r\n",
            Framing::Trailer,
        ),
        (
            "x-amz-trailer-signature:00\r\na:1\r\n",
            Framing::DataAfterEnd,
        ),
        (&"a".repeat(MAX_TRAILERS + 1), Framing::TrailersTooLong),
    ] {
        let input = format!("0;chunk-signature=00\r\n{trailers}");
        assert_eq!(
            run(signer("00", with_trailers(None, &["a"])), input.as_bytes()),
            Err(framing.into()),
            "{trailers:.40?}"
        );
    }
}

#[test]
fn trailers_that_were_not_announced_are_refused() {
    let input =
        b"0;chunk-signature=00\r\nx-amz-checksum-sha1:x\r\nx-amz-trailer-signature:00\r\n\r\n";
    let stream = with_trailers(Some(0), &["x-amz-checksum-crc32"]);
    assert_eq!(
        run(signer("00", stream), input),
        Err(Framing::Length.into())
    );
}

#[test]
fn memory_stays_constant_whatever_size_is_claimed() {
    let mut signer = signer("00", plain(None));
    let mut output = Vec::new();
    signer
        .push(b"ffffffffffffffff;chunk-signature=00\r\n", &mut output)
        .unwrap();
    let block = vec![0; 1024 * 1024];
    for _ in 0..16 {
        output.clear();
        signer.push(&block, &mut output).unwrap();
        assert!(output.len() <= block.len() + 16 * 128);
        assert!(signer.buffer.capacity() <= 2 * CHUNK_SIZE);
        assert!(signer.decoder.kept() <= MAX_CHUNK_LINE);
    }
}

#[test]
fn the_length_of_all_known_checksums_is_known() {
    for (name, length) in [
        ("x-amz-checksum-crc32", 8),
        ("x-amz-checksum-crc32c", 8),
        ("x-amz-checksum-crc64nvme", 12),
        ("x-amz-checksum-sha1", 28),
        ("x-amz-checksum-sha256", 44),
    ] {
        let value = "x".repeat(length);
        let input = format!(
            "1;chunk-signature=00\r\nx\r\n0;chunk-signature=00\r\n{name}:{value}\r\nx-amz-trailer-signature:00\r\n\r\n"
        );
        let signer = signer("00", with_trailers(Some(1), &[name]));
        let length = signer.content_length().unwrap();
        let output = run(signer, input.as_bytes()).unwrap();
        assert_eq!(output.len() as u64, length, "{name}");
    }
    for unknown in [&["x-amz-checksum-new"][..], &["other"], &[]] {
        assert_eq!(
            signer("00", with_trailers(Some(1), unknown)).content_length(),
            None
        );
    }
}

#[test]
fn a_length_that_cannot_be_counted_is_refused() {
    assert_eq!(
        encoded_length(Algorithm::HmacSha256, &plain(Some(u64::MAX))),
        Err(Error::TooLong)
    );
}

#[test]
fn nothing_is_printed_of_the_key() {
    assert_eq!(
        format!("{:?}", signer("00", plain(Some(4)))),
        "ChunkSigner { decoded: 0, content_length: Some(176), .. }"
    );
}
