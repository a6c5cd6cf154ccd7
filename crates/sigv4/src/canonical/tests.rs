use super::*;

const S3: PathRule = PathRule::Single;
const OTHER: PathRule = PathRule::Double;

#[test]
fn paths_of_s3_are_encoded_once_and_not_normalised() {
    for (path, canonical) in [
        ("", "/"),
        ("/", "/"),
        ("/a//b/./c/../d", "/a//b/./c/../d"),
        ("/a%20b", "/a%20b"),
        ("/a b", "/a%20b"),
        ("/state=fl/@x", "/state%3Dfl/%40x"),
        ("/%3Fa=b%20c", "/%3Fa%3Db%20c"),
        ("/a%2fb", "/a%2Fb"),
        ("/%7Ea", "/~a"),
        ("/a%2Bb+c", "/a%2Bb%2Bc"),
        ("/100%", "/100%25"),
        ("/key?versionId=1", "/key"),
    ] {
        assert_eq!(uri(path, S3), canonical, "{path}");
    }
}

#[test]
fn other_paths_are_normalised_and_encoded_again() {
    for (path, canonical) in [
        ("", "/"),
        ("/", "/"),
        ("//", "/"),
        ("/prod/", "/prod/"),
        ("//a///b", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../..", "/"),
        ("/a/..", "/"),
        ("/a/../", "/"),
        ("/_search/%3Fa=b%20c", "/_search/%253Fa%3Db%2520c"),
        ("/model/x-v1%3A0/invoke", "/model/x-v1%253A0/invoke"),
        ("/model/x-v1:0/invoke", "/model/x-v1%3A0/invoke"),
        ("/arn%2Fb", "/arn%252Fb"),
        ("/%2e%2e/a", "/%252e%252e/a"),
        ("/ሴ", "/%E1%88%B4"),
        ("/my path", "/my%2520path"),
    ] {
        assert_eq!(uri(path, OTHER), canonical, "{path}");
    }
}

#[test]
fn every_s3_signing_name_has_the_rule_of_s3() {
    for service in ["s3", "s3express", "s3-outposts", "s3-object-lambda"] {
        assert_eq!(PathRule::of(service), S3, "{service}");
    }
    for service in ["dynamodb", "s3tables", "execute-api"] {
        assert_eq!(PathRule::of(service), OTHER, "{service}");
    }
}

#[test]
fn queries_are_sorted_after_encoding() {
    for (raw, canonical) in [
        ("", ""),
        ("a", "a="),
        ("a=&b", "a=&b="),
        ("a=1&&b=2&", "a=1&b=2"),
        ("b=2&a=1", "a=1&b=2"),
        ("a=2&a=1", "a=1&a=2"),
        ("a=1&A=2", "A=2&a=1"),
        ("a-b=1&a=2", "a=2&a-b=1"),
        ("a=b=c", "a=b%3Dc"),
        ("prefix=a/b", "prefix=a%2Fb"),
        ("prefix=a%2fb", "prefix=a%2Fb"),
        ("q=%7e", "q=~"),
        ("q=é", "q=%C3%A9"),
    ] {
        assert_eq!(query(raw), canonical, "{raw}");
    }
}

#[test]
fn a_plus_is_signed_as_sent() {
    assert_eq!(query("q=a+b"), "q=a+b");
    assert_eq!(query("q=a%2Bb"), "q=a%2Bb");
    assert_eq!(query("q=a%20b"), "q=a%20b");
}

#[test]
fn a_signature_does_not_sign_itself() {
    let raw = "X-Amz-Signature=1&b=2&x-amz-signature=3&a=1&X-Amz-Signat%75re=4";
    assert_eq!(presigned_query(raw), "a=1&b=2");
    assert_eq!(query("X-Amz-Signature=1"), "X-Amz-Signature=1");
}

#[test]
fn header_values_are_squeezed_and_keep_their_order() {
    let signed = SignedHeaders::parse("host;x-amz-meta-a;x-missing").unwrap();
    let fields: &[Field<'_>] = &[
        ("X-Amz-Meta-A", b"  two \t  words "),
        ("Host", b" example.com "),
        ("x-amz-meta-a", b"\"a  b\""),
        ("x-unsigned", b"x"),
        ("X-AMZ-META-A", b""),
    ];
    let block = headers(fields, &signed, "ignored").unwrap();
    assert_eq!(
        String::from_utf8(block).unwrap(),
        "host:example.com\nx-amz-meta-a:two words,\"a b\",\nx-missing:\n"
    );
}

#[test]
fn an_absent_or_empty_host_is_the_authority() {
    let signed = SignedHeaders::parse("host").unwrap();
    for fields in [&[][..], &[("host", &b""[..])]] {
        assert_eq!(
            headers(fields, &signed, "example.com:9000").unwrap(),
            b"host:example.com:9000\n"
        );
    }
    let two: &[Field<'_>] = &[("host", b"a"), ("host", b"b")];
    assert_eq!(
        headers(two, &signed, "a"),
        Err(Error::Duplicate { field: "host" })
    );
}
