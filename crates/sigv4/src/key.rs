//! Signing keys: derived from credentials, used, wiped.

use std::fmt;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use p256::ecdsa::{DerSignature, signature::Signer};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{Algorithm, CredentialScope, Credentials, Error, scope::TERMINATOR};

/// A key that signs strings. Wiped on drop, and never printed.
pub struct SigningKey(Kind);

enum Kind {
    Hmac(Zeroizing<[u8; 32]>),
    Ecdsa(Box<p256::ecdsa::SigningKey>),
}

impl SigningKey {
    /// Derives the key for one algorithm and scope.
    pub fn derive(
        algorithm: Algorithm,
        credentials: &Credentials<'_>,
        scope: &CredentialScope,
    ) -> Result<Self, Error> {
        let secret = credentials.secret_access_key;
        match (algorithm, scope.region()) {
            (Algorithm::HmacSha256, Some(region)) => Ok(Self::from_hmac_key(hmac_key(
                secret,
                scope.date(),
                region,
                scope.service(),
            ))),
            (Algorithm::EcdsaP256Sha256, None) => {
                Self::from_scalar(&*ecdsa_scalar(credentials.access_key_id, secret)?)
            }
            // The scope was read for the other algorithm.
            (Algorithm::HmacSha256, None) | (Algorithm::EcdsaP256Sha256, Some(_)) => {
                Err(Error::KeyDerivation)
            }
        }
    }

    /// A SigV4 key, already derived.
    #[must_use]
    pub fn from_hmac_key(key: Zeroizing<[u8; 32]>) -> Self {
        Self(Kind::Hmac(key))
    }

    /// A SigV4A key, already derived.
    pub fn from_scalar(scalar: &[u8; 32]) -> Result<Self, Error> {
        p256::ecdsa::SigningKey::from_slice(scalar)
            .map(|key| Self(Kind::Ecdsa(Box::new(key))))
            .map_err(|_| Error::KeyDerivation)
    }

    /// The signature of `text` in lower-case hexadecimal: an HMAC, or an ECDSA signature in DER with the nonce of
    /// RFC 6979.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        match &self.0 {
            Kind::Hmac(key) => HEXLOWER.encode(&*hmac(&**key, &[text.as_bytes()])),
            Kind::Ecdsa(key) => {
                let signature: DerSignature = key.sign(text.as_bytes());
                HEXLOWER.encode(signature.as_bytes())
            }
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

/// The SigV4 key of a day, region and service.
#[must_use]
pub fn hmac_key(secret: &str, date: &str, region: &str, service: &str) -> Zeroizing<[u8; 32]> {
    let start = Zeroizing::new(format!("AWS4{secret}"));
    let mut key = hmac(start.as_bytes(), &[date.as_bytes()]);
    for part in [region, service, TERMINATOR] {
        key = hmac(&*key, &[part.as_bytes()]);
    }
    key
}

/// The SigV4A private key of a credential: the first candidate that is a scalar of the curve, plus one.
pub fn ecdsa_scalar(
    access_key_id: &str,
    secret_access_key: &str,
) -> Result<Zeroizing<[u8; 32]>, Error> {
    let start = Zeroizing::new(format!("AWS4A{secret_access_key}"));
    let label = Algorithm::EcdsaP256Sha256.name().as_bytes();
    for counter in 1..=u8::MAX - 1 {
        let mut candidate = hmac(
            start.as_bytes(),
            &[
                &1_u32.to_be_bytes(),
                label,
                &[0],
                access_key_id.as_bytes(),
                &[counter],
                &KEY_BITS.to_be_bytes(),
            ],
        );
        if *candidate <= ORDER_MINUS_TWO {
            increment(&mut candidate);
            return Ok(candidate);
        }
    }
    Err(Error::KeyDerivation)
}

/// Adds one. Cannot overflow below the order of the curve.
fn increment(number: &mut [u8; 32]) {
    for byte in number.iter_mut().rev() {
        let (sum, carry) = byte.overflowing_add(1);
        *byte = sum;
        if !carry {
            return;
        }
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    // A key longer than a block is hashed by definition; one of a block is taken as it is.
    let mut block = Zeroizing::new([0; 64]);
    if let Some(start) = block.get_mut(..key.len()) {
        start.copy_from_slice(key);
    } else {
        block[..32].copy_from_slice(&*Zeroizing::new(<[u8; 32]>::from(
            <Sha256 as sha2::Digest>::digest(key),
        )));
    }
    let mut mac = Hmac::<Sha256>::new(&(*block).into());
    for part in parts {
        mac.update(part);
    }
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// Length of the derived key.
const KEY_BITS: u32 = 256;

/// Order of P-256 less two: the largest candidate that leaves room for adding one.
const ORDER_MINUS_TWO: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x4f,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sigv4a_key_is_derived() {
        let scalar = ecdsa_scalar(
            "AKISORANDOMAASORANDOM",
            "q+jcrXGc+0zWN6uzclKVhvMmUsIfRPa4rlRandom",
        )
        .unwrap();
        let key = p256::ecdsa::SigningKey::from_slice(&*scalar).unwrap();
        assert_eq!(
            HEXLOWER.encode(key.verifying_key().to_sec1_point(false).as_bytes()),
            "0415d242ceebf8d8169fd6a8b5a746c41140414c3b07579038da06af89190fffcb\
             0515242cedd82e94799482e4c0514b505afccf2c0c98d6a553bf539f424c5ec0"
        );
    }

    #[test]
    fn adding_one_carries() {
        let mut number = [0xff; 32];
        number[30] = 0;
        increment(&mut number);
        assert_eq!(number[29..], [0xff, 1, 0]);
    }

    #[test]
    fn a_scope_of_the_other_algorithm_gives_no_key() {
        let credentials = Credentials {
            access_key_id: "AKID",
            secret_access_key: "secret",
            session_token: None,
        };
        let scope =
            CredentialScope::parse(Algorithm::EcdsaP256Sha256, "20260101/s3/aws4_request").unwrap();
        assert!(SigningKey::derive(Algorithm::EcdsaP256Sha256, &credentials, &scope).is_ok());
        assert!(SigningKey::derive(Algorithm::HmacSha256, &credentials, &scope).is_err());
    }
}
