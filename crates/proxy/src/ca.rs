//! The certificate authority that one sandbox trusts.
//!
//! It lives in memory and signs leaves for the names that the workload asks for. Its key never
//! reaches a file; the only way out is [`CertificateAuthority::to_parts`], which exists so that the
//! key can travel over a pipe to a proxy in a container.

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
};
use rustls::{
    crypto::aws_lc_rs::sign::any_ecdsa_type,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::{CertifiedKey, SigningKey},
};
use zeroize::Zeroizing;

use crate::Error;

/// Signs the certificates that the proxy shows to the workload.
///
/// One per sandbox: a leaf of one sandbox means nothing in another.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pem: String,
    validity: Validity,
    leaf_key: KeyPair,
    leaf_signer: Arc<dyn SigningKey>,
}

impl CertificateAuthority {
    /// Makes a new authority with a fresh ECDSA P-256 key.
    pub fn generate() -> Result<Self, Error> {
        let validity = Validity::starting(SystemTime::now());
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let params = authority_params(validity)?;
        let certificate = params.self_signed(&key)?;
        let der = certificate.der().clone();
        Self::assemble(Issuer::new(params, key), der, certificate.pem(), validity)
    }

    /// Takes up an authority that another process made.
    pub fn from_parts(parts: &AuthorityParts) -> Result<Self, Error> {
        let validity = Validity {
            not_before: SystemTime::UNIX_EPOCH + Duration::from_secs(parts.not_before),
            not_after: SystemTime::UNIX_EPOCH + Duration::from_secs(parts.not_after),
        };
        let key = KeyPair::from_pkcs8_pem_and_sign_algo(&parts.key_pem, &PKCS_ECDSA_P256_SHA256)?;
        let der = CertificateDer::from_pem_slice(parts.certificate_pem.as_bytes())
            .map_err(|source| Error::AuthorityPem { source })?;
        let pem = parts.certificate_pem.clone();
        Self::assemble(
            Issuer::new(authority_params(validity)?, key),
            der,
            pem,
            validity,
        )
    }

    /// Everything another process needs to sign as this authority. Holds the key: send it over a
    /// pipe, never to a file.
    pub fn to_parts(&self) -> AuthorityParts {
        AuthorityParts {
            certificate_pem: self.pem.clone(),
            key_pem: Zeroizing::new(self.issuer.key().serialize_pem()),
            not_before: unix_seconds(self.validity.not_before),
            not_after: unix_seconds(self.validity.not_after),
        }
    }

    /// The certificate to trust, as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// The certificate to trust, as DER.
    pub fn certificate_der(&self) -> &[u8] {
        &self.der
    }

    /// When the certificate and every leaf of it stop being valid. A sandbox that lives longer
    /// makes a new authority before then.
    pub fn not_after(&self) -> SystemTime {
        self.validity.not_after
    }

    /// Signs a leaf for one name or address.
    pub(crate) fn leaf(&self, subject: &LeafName) -> Result<CertifiedKey, Error> {
        let mut params = CertificateParams::default();
        params.not_before = self.validity.not_before.into();
        params.not_after = self.validity.not_after.into();
        params.serial_number = Some(random_serial()?);
        params.distinguished_name = DistinguishedName::new();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![match subject {
            LeafName::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            LeafName::Address(address) => SanType::IpAddress(*address),
        }];
        let leaf = params.signed_by(&self.leaf_key, &self.issuer)?;
        Ok(CertifiedKey::new(
            vec![leaf.der().clone(), self.der.clone()],
            Arc::clone(&self.leaf_signer),
        ))
    }

    fn assemble(
        issuer: Issuer<'static, KeyPair>,
        der: CertificateDer<'static>,
        pem: String,
        validity: Validity,
    ) -> Result<Self, Error> {
        // One key for all leaves: a new host then costs one signature and no key generation.
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let pkcs8 = PrivateKeyDer::Pkcs8(leaf_key.serialize_der().into());
        let leaf_signer = any_ecdsa_type(&pkcs8).map_err(Error::Tls)?;
        Ok(Self {
            issuer,
            der,
            pem,
            validity,
            leaf_key,
            leaf_signer,
        })
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority")
            .finish_non_exhaustive()
    }
}

/// A certificate authority in transit. `Debug` does not show the key.
pub struct AuthorityParts {
    /// The authority's certificate.
    pub certificate_pem: String,
    /// Its private key, PKCS#8.
    pub key_pem: Zeroizing<String>,
    /// Start of validity, in seconds since the Unix epoch.
    pub not_before: u64,
    /// End of validity, in seconds since the Unix epoch.
    pub not_after: u64,
}

impl fmt::Debug for AuthorityParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityParts")
            .field("not_before", &self.not_before)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// What a leaf certificate is for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum LeafName {
    Dns(String),
    Address(IpAddr),
}

#[derive(Clone, Copy)]
struct Validity {
    not_before: SystemTime,
    not_after: SystemTime,
}

impl Validity {
    fn starting(now: SystemTime) -> Self {
        Self {
            not_before: now - CLOCK_MARGIN,
            not_after: now + LIFETIME,
        }
    }
}

fn authority_params(validity: Validity) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    params.not_before = validity.not_before.into();
    params.not_after = validity.not_after.into();
    params.serial_number = Some(random_serial()?);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, SUBJECT);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// All leaves share one key, so the serial must not be derived from it: some clients refuse two
/// certificates of one issuer with the same serial.
fn random_serial() -> Result<SerialNumber, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|source| Error::Randomness { source })?;
    bytes[0] &= 0x7f;
    Ok(SerialNumber::from_slice(&bytes))
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

const SUBJECT: &str = "Cordon sandbox CA";

/// A container in a VM may run behind the host's clock.
const CLOCK_MARGIN: Duration = Duration::from_secs(24 * 3600);

/// Long enough for any run, short enough that a leaked bundle is soon worth nothing.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
