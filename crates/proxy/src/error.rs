//! What can go wrong before a request is served, and while the log is read.
//!
//! Trouble with one request is a [`crate::refusal::Refusal`], not an error: it becomes a response.

use std::{io, path::PathBuf};

use rustls::pki_types::pem;

/// A failure of the proxy itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library refused a key or a configuration.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// The handed-over authority is not PEM.
    #[error("the certificate authority is not valid PEM")]
    AuthorityPem {
        /// What the parser said.
        source: pem::Error,
    },
    /// The operating system gave no random bytes.
    #[error("no randomness available")]
    Randomness {
        /// What the operating system said.
        source: getrandom::Error,
    },
    /// A socket could not be taken over.
    #[error("cannot serve the {which} socket")]
    Socket {
        /// Which of the four.
        which: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file with extra upstream certificates cannot be read.
    #[error("cannot read the CA bundle {}", path.display())]
    BundleUnreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file with extra upstream certificates is not PEM.
    #[error("the CA bundle {} is not valid PEM", path.display())]
    BundleNotPem {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: pem::Error,
    },
    /// A file with extra upstream certificates has none.
    #[error("the CA bundle {} holds no certificate", path.display())]
    BundleEmpty {
        /// The file.
        path: PathBuf,
    },
    /// An extra upstream certificate is not one.
    #[error("extra upstream certificate {index} cannot be used as a root")]
    BadRoot {
        /// Its place in the list, from 0.
        index: usize,
        /// What the TLS library said.
        source: rustls::Error,
    },
    /// No name server of the outside answers.
    #[error("no name server answers: {reason}")]
    NoNameServer {
        /// What happened.
        reason: String,
    },
    /// The URL of the corporate proxy cannot be used.
    #[error("{url:?} is not a proxy URL of the form http://[user:password@]host[:port]")]
    ProxyUrl {
        /// The URL without its credentials.
        url: String,
    },
    /// The credentials for the corporate proxy cannot be sent.
    #[error("the credentials for the upstream proxy cannot be sent")]
    ProxyCredentials,
    /// What bypasses the corporate proxy cannot be understood.
    #[error("{entry:?} is no host, address or network that could bypass the upstream proxy")]
    ProxyBypass {
        /// The entry of the list.
        entry: String,
    },
    /// A log file cannot be opened or read.
    #[error("cannot use the network log {}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The thread that writes the log cannot be started.
    #[error("cannot start the thread that writes the network log")]
    LogThread {
        /// What the operating system said.
        source: io::Error,
    },
    /// The program was told nothing.
    #[error("standard input ended before it said how to serve")]
    NoDocument,
    /// A line of the program's input is not one that this version writes. Why is not told, because the
    /// reason could quote a secret.
    #[error("standard input holds a line that this version does not understand")]
    BadDocument,
    /// Secrets cannot be handed over.
    #[error("cannot hand over the secrets")]
    Handover(#[source] cordon_secrets::SecretsError),
    /// A line of the program's output is not one that this version writes.
    #[error("the proxy said something that this version does not understand")]
    Answer {
        /// What was wrong.
        source: serde_json::Error,
    },
    /// What the program passes on of PID 1 is no base64.
    #[error("the proxy passed something on that this version does not understand")]
    BadRelay,
    /// A line between the program and its keeper has no end.
    #[error("a line between the proxy and its keeper is too long")]
    LineTooLong,
    /// A pipe between the program and its keeper broke.
    #[error("cannot use the pipe between the proxy and its keeper")]
    Stream(#[source] io::Error),
}
