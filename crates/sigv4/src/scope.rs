//! The algorithm and the credential scope: what a signature is good for.

use std::fmt;

use crate::Error;

/// How a request is signed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Algorithm {
    /// SigV4: an HMAC with a key for one region.
    HmacSha256,
    /// SigV4A: an ECDSA signature that is good for a set of regions.
    EcdsaP256Sha256,
}

impl Algorithm {
    /// The algorithm of that name, as spelled on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::HmacSha256, Self::EcdsaP256Sha256]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "AWS4-HMAC-SHA256",
            Self::EcdsaP256Sha256 => "AWS4-ECDSA-P256-SHA256",
        }
    }
}

/// Date, region and service that a signature is bound to. SigV4A has no region here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CredentialScope {
    date: String,
    region: Option<String>,
    service: String,
}

impl CredentialScope {
    /// Reads `date/region/service/aws4_request`, or `date/service/aws4_request` for SigV4A.
    pub fn parse(algorithm: Algorithm, text: &str) -> Result<Self, Error> {
        let parts: Vec<_> = text.split('/').collect();
        let (date, region, service) = match (algorithm, parts.as_slice()) {
            (Algorithm::HmacSha256, &[date, region, service, TERMINATOR]) => {
                (date, Some(region), service)
            }
            (Algorithm::EcdsaP256Sha256, &[date, service, TERMINATOR]) => (date, None, service),
            (Algorithm::HmacSha256 | Algorithm::EcdsaP256Sha256, _) => return Err(MALFORMED),
        };
        let dated = date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit());
        if !dated || service.is_empty() || !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(MALFORMED);
        }
        Ok(Self {
            date: date.to_owned(),
            region: region.map(str::to_owned),
            service: service.to_owned(),
        })
    }

    /// Splits `access-key-id/scope`. The id may contain slashes; the scope has a known number of them.
    pub(crate) fn split_credential(
        algorithm: Algorithm,
        text: &str,
    ) -> Result<(String, Self), Error> {
        let slashes = match algorithm {
            Algorithm::HmacSha256 => 4,
            Algorithm::EcdsaP256Sha256 => 3,
        };
        let (at, _) = text.rmatch_indices('/').nth(slashes - 1).ok_or(MALFORMED)?;
        let (id, scope) = (&text[..at], &text[at + 1..]);
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(MALFORMED);
        }
        Ok((id.to_owned(), Self::parse(algorithm, scope)?))
    }

    /// The day, `YYYYMMDD`.
    #[must_use]
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The region; `None` with SigV4A.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The service's signing name.
    #[must_use]
    pub fn service(&self) -> &str {
        &self.service
    }
}

impl fmt::Display for CredentialScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.date)?;
        if let Some(region) = &self.region {
            write!(f, "{region}/")?;
        }
        write!(f, "{}/{TERMINATOR}", self.service)
    }
}

pub(crate) const TERMINATOR: &str = "aws4_request";

const MALFORMED: Error = Error::Malformed {
    field: "credential scope",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_and_written_back() {
        for (algorithm, text, region) in [
            (
                Algorithm::HmacSha256,
                "20260101/eu-west-1/s3/aws4_request",
                Some("eu-west-1"),
            ),
            (Algorithm::EcdsaP256Sha256, "20260101/s3/aws4_request", None),
        ] {
            let scope = CredentialScope::parse(algorithm, text).unwrap();
            assert_eq!(scope.to_string(), text);
            assert_eq!(scope.region(), region);
            assert_eq!((scope.date(), scope.service()), ("20260101", "s3"));
        }
    }

    #[test]
    fn a_scope_of_the_other_algorithm_is_refused() {
        let four = "20260101/eu-west-1/s3/aws4_request";
        let three = "20260101/s3/aws4_request";
        assert!(CredentialScope::parse(Algorithm::EcdsaP256Sha256, four).is_err());
        assert!(CredentialScope::parse(Algorithm::HmacSha256, three).is_err());
    }

    #[test]
    fn a_broken_scope_is_refused() {
        for text in [
            "",
            "x",
            "2026010/r/s3/aws4_request",
            "2026010x/r/s3/aws4_request",
            "20260101/r//aws4_request",
            "20260101/r/s3/aws4",
            "20260101/r/s 3/aws4_request",
            "20260101/r\n/s3/aws4_request",
        ] {
            assert!(
                CredentialScope::parse(Algorithm::HmacSha256, text).is_err(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_access_key_id_may_contain_slashes() {
        let (id, scope) = CredentialScope::split_credential(
            Algorithm::HmacSha256,
            "team/key/20260101/auto/s3/aws4_request",
        )
        .unwrap();
        assert_eq!(id, "team/key");
        assert_eq!(scope.region(), Some("auto"));
    }
}
