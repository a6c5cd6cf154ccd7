//! Whether the world outside could be reached: name servers that answer, certificates that can be read.

use cordon_proxy::Upstream;

use super::{Code, Finding};

/// What is to be said of the way out. A machine without one is no error where nobody needs it.
pub(super) async fn check(upstream: &Upstream, needed: bool) -> Vec<Finding> {
    vec![names(upstream, needed).await, certificates(upstream)]
}

async fn names(upstream: &Upstream, needed: bool) -> Finding {
    let servers: Vec<_> = upstream
        .dns_servers
        .iter()
        .map(ToString::to_string)
        .collect();
    let who = match servers.as_slice() {
        [] => "the machine's name server".to_owned(),
        servers => servers.join(", "),
    };
    match upstream.name_server_answers().await {
        Ok(()) => Finding::ok(Code::Dns, format!("{who} answers")),
        Err(error) => {
            let message =
                format!("{who} does not answer, so that containers reach no host: {error}");
            let finding = if needed || !servers.is_empty() {
                Finding::error(Code::DnsUnreachable, message)
            } else {
                Finding::warning(Code::DnsUnreachable, message)
            };
            match servers.as_slice() {
                [] => finding
                    .hint("cat /etc/resolv.conf")
                    .hint("cordon doctor --upstream-dns ADDRESS"),
                _ => finding.hint("cordon doctor"),
            }
        }
    }
}

fn certificates(upstream: &Upstream) -> Finding {
    match upstream.roots() {
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let message = format!("{error}{}", cause.unwrap_or_default());
            Finding::error(Code::CertificatesUnusable, message)
                .hint("openssl x509 -noout -text -in FILE")
        }
        Ok(roots) => {
            let own = match roots.of_the_machine {
                0 => "the machine has no certificates; those built in are trusted".to_owned(),
                count => format!("{count} certificates of the machine are trusted"),
            };
            let added = match roots.added {
                0 => String::new(),
                count => format!(", and {count} more"),
            };
            let message = format!("{own}{added}");
            match roots.of_the_machine {
                0 => Finding::info(Code::Certificates, message)
                    .hint("sudo apt-get install ca-certificates"),
                _ => Finding::ok(Code::Certificates, message),
            }
        }
    }
}
