//! The `Authorization` header of SigV4 and SigV4A.

use crate::{Algorithm, CredentialScope, Error, Field, SignedHeaders};

/// What an `Authorization` header claims.
#[derive(Debug)]
pub(crate) struct Authorization {
    pub(crate) algorithm: Algorithm,
    pub(crate) access_key_id: String,
    pub(crate) scope: CredentialScope,
    pub(crate) signed_headers: SignedHeaders,
    pub(crate) signature: String,
}

impl Authorization {
    /// Finds the AWS signature among the `Authorization` headers; others are ignored.
    pub(crate) fn find(fields: &[Field<'_>]) -> Result<Option<Self>, Error> {
        let mut found = None;
        for (_, value) in fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION))
        {
            let Some(rest) = aws_scheme(value.trim_ascii()) else {
                continue;
            };
            if found.is_some() {
                return Err(Error::Duplicate {
                    field: AUTHORIZATION,
                });
            }
            found = Some(Self::parse(rest)?);
        }
        Ok(found)
    }

    fn parse(value: &[u8]) -> Result<Self, Error> {
        let value = str::from_utf8(value).map_err(|_| MALFORMED)?;
        let (scheme, parameters) = value.split_once([' ', '\t']).ok_or(MALFORMED)?;
        let algorithm = Algorithm::from_name(scheme).ok_or(Error::UnsupportedScheme)?;

        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        for parameter in parameters.split(',') {
            let (name, value) = parameter.trim_ascii().split_once('=').ok_or(MALFORMED)?;
            let slot = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return Err(MALFORMED),
            };
            if slot.replace(value).is_some() {
                return Err(MALFORMED);
            }
        }
        let (Some(credential), Some(signed_headers), Some(signature)) =
            (credential, signed_headers, signature)
        else {
            return Err(MALFORMED);
        };

        let (access_key_id, scope) = CredentialScope::split_credential(algorithm, credential)?;
        Ok(Self {
            algorithm,
            access_key_id,
            scope,
            signed_headers: SignedHeaders::parse(signed_headers)?,
            signature: parse_signature(signature)?,
        })
    }
}

/// The new value of the header.
pub(crate) fn format(
    algorithm: Algorithm,
    credential: &str,
    signed_headers: &SignedHeaders,
    signature: &str,
) -> String {
    format!(
        "{} Credential={credential}, SignedHeaders={signed_headers}, Signature={signature}",
        algorithm.name()
    )
}

/// A signature in lower-case hexadecimal, of any length: nobody here verifies it.
fn parse_signature(text: &str) -> Result<String, Error> {
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.is_empty() || !text.bytes().all(hex) {
        return Err(Error::Malformed { field: "signature" });
    }
    Ok(text.to_owned())
}

pub(crate) const AUTHORIZATION: &str = "authorization";

/// The value if its scheme is one of AWS's, supported or not.
fn aws_scheme(value: &[u8]) -> Option<&[u8]> {
    let prefix = |name: &[u8]| {
        value
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    [&b"AWS4-"[..], b"AWS3", b"AWS "]
        .into_iter()
        .any(prefix)
        .then_some(value)
}

const MALFORMED: Error = Error::Malformed {
    field: AUTHORIZATION,
};

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/s3/aws4_request, \
                        SignedHeaders=host;x-amz-date, Signature=0123abcdef";

    fn find(values: &[&str]) -> Result<Option<Authorization>, Error> {
        let fields: Vec<_> = values
            .iter()
            .map(|value| ("Authorization", value.as_bytes()))
            .collect();
        Authorization::find(&fields)
    }

    #[test]
    fn a_header_is_read() {
        let found = find(&[GOOD]).unwrap().unwrap();
        assert_eq!(found.algorithm, Algorithm::HmacSha256);
        assert_eq!(found.access_key_id, "AKID");
        assert_eq!(
            found.scope.to_string(),
            "20260101/us-east-1/s3/aws4_request"
        );
        assert_eq!(found.signed_headers.to_string(), "host;x-amz-date");
        assert_eq!(found.signature, "0123abcdef");
    }

    #[test]
    fn spaces_and_order_do_not_matter() {
        let tight = GOOD.replace(", ", ",");
        assert!(find(&[&tight]).unwrap().is_some());
        let turned = "AWS4-ECDSA-P256-SHA256 Signature=ab, SignedHeaders=host,  \
                      Credential=AKID/20260101/s3/aws4_request";
        let found = find(&[turned]).unwrap().unwrap();
        assert_eq!(found.algorithm, Algorithm::EcdsaP256Sha256);
        assert_eq!(found.scope.region(), None);
    }

    #[test]
    fn other_schemes_are_none_of_our_business() {
        assert!(find(&[]).unwrap().is_none());
        assert!(find(&["Bearer x", "Basic AWS4-"]).unwrap().is_none());
        assert!(find(&["Bearer x", GOOD, ""]).unwrap().is_some());
    }

    #[test]
    fn two_signatures_are_refused() {
        assert_eq!(
            find(&[GOOD, GOOD]).unwrap_err(),
            Error::Duplicate {
                field: AUTHORIZATION
            }
        );
    }

    #[test]
    fn other_aws_schemes_are_refused_and_not_overlooked() {
        for value in [
            "AWS AKID:c2lnbmF0dXJl",
            "AWS3-HTTPS AWSAccessKeyId=AKID",
            "AWS4-X509-RSA-SHA256 Credential=1/20260101/r/rolesanywhere/aws4_request",
            "aws4-hmac-sha256 Credential=AKID/20260101/r/s3/aws4_request",
        ] {
            assert_eq!(
                find(&[value]).unwrap_err(),
                Error::UnsupportedScheme,
                "{value}"
            );
        }
    }

    #[test]
    fn a_broken_header_is_an_error_and_not_a_pass() {
        for value in [
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 garbage",
            "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/s3/aws4_request, SignedHeaders=host",
            "AWS4-HMAC-SHA256 Credential=AKID, SignedHeaders=host, Signature=ab",
            "AWS4-HMAC-SHA256 Credential=/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=ab",
            &GOOD.replace("0123", "ABCD"),
            &GOOD.replace("0123abcdef", ""),
            &format!("{GOOD}, Signature=ab"),
            &format!("{GOOD}, Bearer x"),
            &format!("{GOOD} x"),
            &format!("{GOOD}, Extra=1"),
        ] {
            assert!(find(&[value]).is_err(), "{value}");
        }
        let binary: &[Field<'_>] = &[("authorization", b"AWS4-HMAC-SHA256 \xff")];
        assert!(Authorization::find(binary).is_err());
    }
}
