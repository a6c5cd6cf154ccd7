//! Makes a container trust the sandbox's certificate authority without running anything in it.
//!
//! The container can reach nobody but the proxy, so the authority is the only one it needs: one file
//! with one certificate is mounted where distributions look, and named in the variables of programs
//! that look elsewhere. Images stay untouched.

use sha1::{Digest, Sha1};

/// Where the files of a run are inside its container.
pub(crate) const BOX: &str = "/.cordon/door";

/// The authority's certificate, among the files of a run.
pub(crate) const CERTIFICATE: &str = "ca.pem";

/// The same certificate as a Java key store, among the files of a run.
pub(crate) const KEY_STORE: &str = "cacerts.jks";

/// Where distributions keep the bundle of certificates they trust.
pub(crate) const BUNDLES: &[&str] = &[
    // Debian, Ubuntu, Alpine, Arch, Gentoo
    "/etc/ssl/certs/ca-certificates.crt",
    // Alpine's LibreSSL and musl programs, macOS-minded ones
    "/etc/ssl/cert.pem",
    // OpenSSL on Debian and Ubuntu, whatever the environment says
    "/usr/lib/ssl/cert.pem",
    // Fedora, RHEL, Amazon Linux
    "/etc/pki/tls/certs/ca-bundle.crt",
    // openSUSE
    "/etc/ssl/ca-bundle.pem",
];

/// Where distributions keep Java's.
pub(crate) const KEY_STORES: &[&str] = &["/etc/ssl/certs/java/cacerts"];

/// Variables that name the bundle to programs which bring their own.
const VARIABLES: &[&str] = &[
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// The variables to set in the container; `java` is what the caller sets `JAVA_TOOL_OPTIONS` to.
pub(crate) fn variables(java: Option<&str>) -> Vec<(String, String)> {
    variables_in(BOX, java)
}

/// Where the commands of a build find the same files. `/dev` is theirs alone, so nothing of it stays in the image.
pub(crate) const BUILD_BOX: &str = "/dev/.cordon";

/// The settings of programs that a build uses and that know no variable for the bundle, by their own name and the
/// variable that names the file. No bundle is mounted in a build: what installs certificates could not replace it.
pub(crate) const BUILD_SETTINGS: &[(&str, &str, &str)] = &[
    (
        "apt.conf",
        "APT_CONFIG",
        "Acquire::https::CAInfo \"/dev/.cordon/ca.pem\";\n",
    ),
    ("wgetrc", "WGETRC", "ca_certificate = /dev/.cordon/ca.pem\n"),
];

/// The variables to set for the commands of a build.
pub(crate) fn build_variables() -> Vec<(String, String)> {
    let settings = BUILD_SETTINGS.iter();
    let settings =
        settings.map(|(file, variable, _)| ((*variable).to_owned(), format!("{BUILD_BOX}/{file}")));
    variables_in(BUILD_BOX, None)
        .into_iter()
        .chain(settings)
        .collect()
}

fn variables_in(directory: &str, java: Option<&str>) -> Vec<(String, String)> {
    let bundle = format!("{directory}/{CERTIFICATE}");
    let store = format!("-Djavax.net.ssl.trustStore={directory}/{KEY_STORE}");
    let java = match java {
        Some(options) => format!("{options} {store}"),
        None => store,
    };
    VARIABLES
        .iter()
        .map(|name| ((*name).to_owned(), bundle.clone()))
        .chain([("JAVA_TOOL_OPTIONS".to_owned(), java)])
        .collect()
}

/// A Java key store with one trusted certificate and no password.
///
/// Its layout has not changed since Java 1.2: a head, the entries, and a digest over both that starts
/// with the password and a fixed phrase.
pub(crate) fn key_store(certificate: &[u8]) -> Vec<u8> {
    let mut store = Vec::new();
    store.extend(0xFEED_FEED_u32.to_be_bytes());
    store.extend(2_u32.to_be_bytes());
    store.extend(1_u32.to_be_bytes());
    store.extend(2_u32.to_be_bytes());
    text(&mut store, "cordon");
    store.extend(0_u64.to_be_bytes());
    text(&mut store, "X.509");
    store.extend(
        u32::try_from(certificate.len())
            .unwrap_or(u32::MAX)
            .to_be_bytes(),
    );
    store.extend(certificate);

    let mut digest = Sha1::new();
    for unit in "changeit".encode_utf16() {
        digest.update(unit.to_be_bytes());
    }
    digest.update(b"Mighty Aphrodite");
    digest.update(&store);
    store.extend(digest.finalize());
    store
}

fn text(store: &mut Vec<u8>, text: &str) {
    store.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    store.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_build_name_the_certificate_where_it_is() {
        for (file, _, content) in BUILD_SETTINGS {
            assert!(
                content.contains(&format!("{BUILD_BOX}/{CERTIFICATE}")),
                "{file}"
            );
        }
    }
}
