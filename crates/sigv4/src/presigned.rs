//! Presigned URLs: the signature and all it needs in the query.

use crate::{Algorithm, CredentialScope, Error, SignedHeaders, Timestamp, canonical};

/// What a presigned query claims.
#[derive(Debug)]
pub(crate) struct Presigned {
    pub(crate) algorithm: Algorithm,
    pub(crate) access_key_id: String,
    pub(crate) scope: CredentialScope,
    pub(crate) signed_headers: SignedHeaders,
    pub(crate) signature: String,
    pub(crate) timestamp: Timestamp,
    pub(crate) expires: Option<u64>,
    pub(crate) session_token: Option<String>,
    pub(crate) payload: Option<String>,
}

impl Presigned {
    /// Reads a query; `None` if nothing in it belongs to a signature.
    ///
    /// Names are compared without case, so that no spelling that a service may accept is overlooked.
    pub(crate) fn parse(query: &str) -> Result<Option<Self>, Error> {
        if parameters(query).any(|(name, _)| is(name, "AWSAccessKeyId")) {
            return Err(Error::UnsupportedScheme);
        }
        let algorithm = value(query, ALGORITHM)?;
        let credential = value(query, CREDENTIAL)?;
        let signature = value(query, canonical::SIGNATURE)?;
        if algorithm.is_none() && credential.is_none() && signature.is_none() {
            return Ok(None);
        }

        let algorithm = Algorithm::from_name(&required(algorithm, ALGORITHM)?)
            .ok_or(Error::UnsupportedScheme)?;
        let (access_key_id, scope) =
            CredentialScope::split_credential(algorithm, &required(credential, CREDENTIAL)?)?;
        Ok(Some(Self {
            algorithm,
            access_key_id,
            scope,
            signed_headers: SignedHeaders::parse(&required(
                value(query, SIGNED_HEADERS)?,
                SIGNED_HEADERS,
            )?)?,
            signature: required(signature, canonical::SIGNATURE)?,
            timestamp: Timestamp::parse(&required(value(query, DATE)?, DATE)?)?,
            expires: value(query, EXPIRES)?
                .map(|text| text.parse())
                .transpose()
                .map_err(|_| Error::Malformed { field: EXPIRES })?,
            session_token: value(query, SESSION_TOKEN)?,
            payload: value(query, CONTENT_SHA256)?,
        }))
    }
}

/// A query with its signature cut out, so that the new one can be put in its place.
#[derive(Debug)]
pub(crate) struct Unsigned {
    before: String,
    after: String,
}

impl Unsigned {
    /// Puts in the real credential and token. All other parameters stay as they are, where they are.
    pub(crate) fn new(
        query: &str,
        credential: &str,
        session_token: Option<&str>,
        signed_headers: &SignedHeaders,
    ) -> Self {
        let (mut before, mut after) = (String::new(), String::new());
        let mut text = &mut before;
        for (index, parameter) in query.split('&').enumerate() {
            if index > 0 {
                text.push('&');
            }
            let name = parameter
                .split_once('=')
                .map_or(parameter, |(name, _)| name);
            let new = if is(name, CREDENTIAL) {
                credential
            } else if is(name, SIGNED_HEADERS) {
                &signed_headers.to_string()
            } else if let Some(token) = session_token
                && is(name, SESSION_TOKEN)
            {
                token
            } else if is(name, canonical::SIGNATURE) {
                text.push_str(name);
                text.push('=');
                text = &mut after;
                continue;
            } else {
                text.push_str(parameter);
                continue;
            };
            text.push_str(name);
            text.push('=');
            text.push_str(&canonical::encode(new, b""));
        }
        Self { before, after }
    }

    /// The canonical form of the query.
    pub(crate) fn canonical(&self) -> String {
        canonical::presigned_query(&self.sign(""))
    }

    /// The query with its signature.
    pub(crate) fn sign(&self, signature: &str) -> String {
        [&self.before, signature, &self.after].concat()
    }
}

const ALGORITHM: &str = "x-amz-algorithm";
const CREDENTIAL: &str = "x-amz-credential";
const DATE: &str = "x-amz-date";
const EXPIRES: &str = "x-amz-expires";
const SIGNED_HEADERS: &str = "x-amz-signedheaders";
const SESSION_TOKEN: &str = "x-amz-security-token";
const CONTENT_SHA256: &str = "x-amz-content-sha256";

fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn is(raw: &str, name: &str) -> bool {
    canonical::decode(raw).is_some_and(|decoded| decoded.eq_ignore_ascii_case(name))
}

fn value(query: &str, field: &'static str) -> Result<Option<String>, Error> {
    let mut values = parameters(query).filter(|(name, _)| is(name, field));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Error::Duplicate { field }),
        (Some((_, value)), None) => canonical::decode(value)
            .map(Some)
            .ok_or(Error::Malformed { field }),
    }
}

fn required(value: Option<String>, field: &'static str) -> Result<String, Error> {
    value.ok_or(Error::Missing { field })
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: &str = "tag=1&X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKID%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20260101T000000Z&X-Amz-Expires=600&X-Amz-SignedHeaders=host\
        &X-Amz-Security-Token=a%2Fb%3D&X-Amz-Signature=0123&tag=2&x";

    #[test]
    fn a_presigned_query_is_read() {
        let found = Presigned::parse(QUERY).unwrap().unwrap();
        assert_eq!(found.algorithm, Algorithm::HmacSha256);
        assert_eq!(found.access_key_id, "AKID");
        assert_eq!(found.scope.service(), "s3");
        assert_eq!(found.timestamp.to_string(), "20260101T000000Z");
        assert_eq!(found.expires, Some(600));
        assert_eq!(found.session_token.as_deref(), Some("a/b="));
        assert_eq!(found.signature, "0123");
        assert_eq!(found.payload, None);
    }

    #[test]
    fn an_ordinary_query_is_none() {
        for query in [
            "",
            "key=value",
            "X-Amz-Date=20260101T000000Z",
            "Signature=1&Expires=2",
        ] {
            assert!(Presigned::parse(query).unwrap().is_none(), "{query}");
        }
    }

    #[test]
    fn no_spelling_of_a_signature_is_overlooked() {
        for query in [
            QUERY
                .to_lowercase()
                .replace("aws4-hmac-sha256", "AWS4-HMAC-SHA256"),
            QUERY.replace("X-Amz", "%58-Amz"),
        ] {
            let query = query.replace("20260101t000000z", "20260101T000000Z");
            let found = Presigned::parse(&query).unwrap().unwrap();
            assert_eq!(found.access_key_id.to_lowercase(), "akid", "{query}");
        }
        assert_eq!(
            Presigned::parse("AWSAccessKeyId=AKID&Signature=x&Expires=1").unwrap_err(),
            Error::UnsupportedScheme
        );
    }

    #[test]
    fn a_broken_signature_is_an_error_and_not_a_pass() {
        for query in [
            QUERY.replace("X-Amz-Credential", "c"),
            QUERY.replace("X-Amz-Algorithm", "a"),
            QUERY.replace("X-Amz-Signature", "s"),
            QUERY.replace("X-Amz-SignedHeaders", "h"),
            QUERY.replace("X-Amz-Date", "d"),
            QUERY.replace("=600", "=soon"),
            QUERY.replace("AWS4-HMAC-SHA256", "AWS4-X509-RSA-SHA256"),
            format!("{QUERY}&x-amz-credential=AKID2"),
            format!("{QUERY}&X-Amz-Signature=45"),
        ] {
            assert!(Presigned::parse(&query).is_err(), "{query}");
        }
    }

    #[test]
    fn only_what_is_secret_is_rewritten() {
        let signed = SignedHeaders::parse("host").unwrap();
        let query = Unsigned::new(QUERY, "REAL/scope", Some("t+o/k="), &signed);
        assert_eq!(
            query.sign("new"),
            QUERY
                .replace(
                    "AKID%2F20260101%2Fus-east-1%2Fs3%2Faws4_request",
                    "REAL%2Fscope"
                )
                .replace("a%2Fb%3D", "t%2Bo%2Fk%3D")
                .replace("0123", "new")
        );
        assert!(!query.canonical().contains("Signature"));
    }
}
