//! What can be cloned.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use cordon_secrets::Secret;

use super::{GitError, refs::Reference};

/// A repository to clone: `REPO[#REF]`, a directory of this host or an address over https or ssh.
///
/// ```
/// # use cordon::CloneSource;
/// let source: CloneSource = "https://reader:s3cret@git.example.com/team/project.git#v2".parse()?;
/// assert_eq!(source.to_string(), "https://git.example.com/team/project.git");
/// assert_eq!((source.name().as_str(), source.reference()), ("project", Some("v2")));
/// # Ok::<(), cordon::GitError>(())
/// ```
#[derive(Debug)]
pub struct CloneSource {
    pub(super) place: Place,
    pub(super) login: Option<Login>,
    pub(super) reference: Option<Reference>,
    reference_text: Option<String>,
}

/// Where the repository is.
#[derive(Debug)]
pub(super) enum Place {
    Directory(PathBuf),
    Https(String),
    /// With the user in front, as ssh needs it, and without.
    Ssh {
        address: String,
        bare: String,
    },
}

/// Who asks.
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: Secret,
    /// The part of the address that it is meant for, `https://HOST[:PORT]`.
    pub(super) scope: String,
}

impl CloneSource {
    /// A short name for the repository, fit for a directory.
    #[must_use]
    pub fn name(&self) -> String {
        let text = self.to_string();
        let last = text.trim_end_matches('/').rsplit(['/', ':']).next();
        let name: String = last
            .unwrap_or_default()
            .trim_end_matches(".git")
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
            .take(NAME_MAX)
            .collect();
        if name.is_empty() {
            "clone".to_owned()
        } else {
            name
        }
    }

    /// The ref to be checked out, if one was named.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.reference_text.as_deref()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login for {}", self.scope)
    }
}

/// The address without credentials.
impl fmt::Display for CloneSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Directory(path) => write!(f, "{}", path.display()),
            Place::Https(address) | Place::Ssh { bare: address, .. } => f.write_str(address),
        }
    }
}

impl FromStr for CloneSource {
    type Err = GitError;

    fn from_str(text: &str) -> Result<Self, GitError> {
        let (repository, reference) = match text.rsplit_once('#') {
            Some((repository, reference)) if !Path::new(text).is_dir() => {
                (repository, Some(reference))
            }
            Some(_) | None => (text, None),
        };
        let (place, login) = place(repository)?;
        Ok(Self {
            place,
            login,
            reference: reference.map(str::parse).transpose()?,
            reference_text: reference.map(str::to_owned),
        })
    }
}

fn place(text: &str) -> Result<(Place, Option<Login>), GitError> {
    if let Ok(path) = fs::canonicalize(text)
        && path.is_dir()
    {
        return Ok((Place::Directory(path), None));
    }
    let bad = || GitError::BadSource {
        source_text: without_user(text),
    };
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) || text.starts_with('-') {
        return Err(bad());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        // [user@]host:path
        return match text.split_once(':') {
            Some((host, path))
                if !host.is_empty() && !host.contains('/') && !path.starts_with(':') =>
            {
                Ok((ssh(text, text), None))
            }
            Some(_) | None => Err(bad()),
        };
    };
    let (authority, _) = rest.split_once('/').ok_or_else(bad)?;
    match scheme {
        "file" if !authority.is_empty() && authority != "localhost" => Err(bad()),
        "file" => {
            let path = fs::canonicalize(rest.trim_start_matches("localhost")).map_err(|_| bad())?;
            Ok((Place::Directory(path), None))
        }
        "https" => {
            let bare = without_user(text);
            let login = authority.rsplit_once('@').map(|(login, host)| {
                let (user, password) = login.split_once(':').unwrap_or((login, ""));
                Login {
                    user: decoded(user),
                    password: Secret::new(decoded(password)),
                    scope: format!("https://{host}"),
                }
            });
            Ok((Place::Https(bare), login))
        }
        "ssh" => Ok((ssh(text, text), None)),
        _ => Err(GitError::Protocol {
            scheme: scheme.to_owned(),
        }),
    }
}

fn ssh(address: &str, text: &str) -> Place {
    Place::Ssh {
        address: address.to_owned(),
        bare: without_user(text),
    }
}

/// An address without what stands before the host.
fn without_user(text: &str) -> String {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

/// `%41` is `A`. What is no such thing stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        match after.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            Some(Err(_)) | None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Names of directories stay readable in a listing.
const NAME_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> CloneSource {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_shown_and_passed_on_without_its_credentials() {
        for (text, shown) in [
            (
                "https://u:p@git.example.com/a/b.git",
                "https://git.example.com/a/b.git",
            ),
            (
                "https://token@git.example.com:8443/a",
                "https://git.example.com:8443/a",
            ),
            (
                "https://u:p@ss@git.example.com/a",
                "https://git.example.com/a",
            ),
            ("git@git.example.com:a/b.git", "git.example.com:a/b.git"),
            (
                "ssh://git@git.example.com:22/a",
                "ssh://git.example.com:22/a",
            ),
            (
                "https://git.example.com/@scope/a",
                "https://git.example.com/@scope/a",
            ),
        ] {
            let source = parsed(text);
            assert_eq!(source.to_string(), shown);
            assert!(!format!("{source:?}").contains("p@ss"), "{source:?}");
        }
        let login = parsed("https://u%40x:p%3a%zz@h/a").login.unwrap();
        assert_eq!(
            (login.user.as_str(), login.password.expose()),
            ("u@x", "p:%zz")
        );
        assert_eq!(login.scope, "https://h");
    }

    #[test]
    fn only_ways_that_somebody_vouches_for_are_taken() {
        for text in [
            "http://h/a",
            "git://h/a",
            "ext::sh -c evil",
            "ext://x/y",
            "fd::3",
            "ftp://h/a",
        ] {
            assert!(text.parse::<CloneSource>().is_err(), "{text}");
        }
        for text in [
            "",
            "-x",
            "--upload-pack=evil",
            "/nowhere/at/all",
            "plain",
            "h:a#--x",
            "h:a#a..b",
            "https://h",
            "file://tmp",
            "file://tmp/x",
        ] {
            assert!(text.parse::<CloneSource>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_ref_stands_behind_the_last_hash_sign() {
        let source = parsed("https://h/a#b.git#feature/x");
        assert_eq!(source.reference(), Some("feature/x"));
        assert_eq!(source.to_string(), "https://h/a#b.git");
        let directory = tempfile::Builder::new()
            .prefix("with#sign")
            .tempdir()
            .unwrap();
        let text = directory.path().to_str().unwrap();
        assert_eq!(parsed(text).reference(), None);
        assert_eq!(parsed(&format!("{text}#v1")).reference(), Some("v1"));
    }
}
