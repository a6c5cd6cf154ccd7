//! What a check found, in a form that people and programs can read.

use std::fmt;

/// What came of a bootstrap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct BootstrapReport {
    /// Nothing of [`Severity::Error`] was found.
    pub ok: bool,
    /// How many agents were looked at; none where the machine as such was.
    pub attempted: usize,
    /// What was changed.
    pub actions: Vec<Action>,
    /// What was found, the machine's first.
    pub findings: Vec<Finding>,
}

/// Something that was mended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Action {
    /// For which agent, if it was for one.
    pub agent: Option<String>,
    /// What was done.
    pub message: String,
}

/// What a check found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is about; does not change between versions.
    pub code: Code,
    /// What was found, for people.
    pub message: String,
    /// What to type next: each is a line for a shell, unless it can only be said in words.
    pub hints: Vec<String>,
    /// The agent that it concerns, if it concerns one.
    pub agent: Option<String>,
    /// The key of the agents file that it concerns, such as `agents.coder.image`.
    pub config: Option<String>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Good to know.
    Info,
    /// Less protection or less comfort than there could be.
    Warning,
    /// Something will not work.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// What a finding is about.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word for it, which stays the same between versions.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    /// An engine answers.
    Engine = "engine",
    /// An engine is not installed.
    EngineMissing = "engine-missing",
    /// An engine is installed and does not answer.
    EngineNotAnswering = "engine-not-answering",
    /// An engine is older than those that are tested.
    EngineOld = "engine-old",
    /// Containers without root can be made.
    Rootless = "rootless",
    /// The user has no range of user ids for containers.
    SubuidMissing = "subuid-missing",
    /// The user has no range of group ids for containers.
    SubgidMissing = "subgid-missing",
    /// The programs that map a range of ids are not installed.
    NewuidmapMissing = "newuidmap-missing",
    /// The kernel lets no user make user namespaces.
    UserNamespacesOff = "user-namespaces-off",
    /// AppArmor keeps ordinary users from making user namespaces.
    AppArmorRestricts = "apparmor-restricts",
    /// Limits take effect.
    Limits = "limits",
    /// Limits do not take effect.
    LimitsUnenforced = "limits-unenforced",
    /// The image is there.
    Image = "image",
    /// No image is named.
    ImageNotConfigured = "image-not-configured",
    /// The image is not there, and can be had.
    ImageMissing = "image-missing",
    /// The image is not there, and cannot be had.
    ImageUnavailable = "image-unavailable",
    /// A container proved from inside that it is isolated.
    Isolation = "isolation",
    /// A container sees or reaches what it should not.
    IsolationBroken = "isolation-broken",
    /// A container could not be started to prove anything.
    IsolationUnproven = "isolation-unproven",
    /// A name server answers.
    Dns = "dns",
    /// No name server answers.
    DnsUnreachable = "dns-unreachable",
    /// The certificates that are trusted can be read.
    Certificates = "certificates",
    /// A certificate that was added cannot be used.
    CertificatesUnusable = "certificates-unusable",
    /// There is room on the disk.
    Disk = "disk",
    /// There is little room on the disk.
    DiskLow = "disk-low",
    /// Nothing is left of runs that died.
    Leftovers = "leftovers",
    /// Something is left of runs that died.
    LeftoversFound = "leftovers-found",
    /// Something that is left of runs that died cannot be removed.
    LeftoversKept = "leftovers-kept",
    /// The mode of an agent can be used, or which one was taken for it.
    Mode = "mode",
    /// The mode of an agent cannot be used.
    ModeUnavailable = "mode-unavailable",
    /// Commands of an agent run on the host, with nothing isolated.
    HostMode = "host-mode",
    /// Commands of an agent are to run on the host, and the host does not allow it.
    HostModeLocked = "host-mode-locked",
    /// The workspace of an agent is not there or cannot be mounted.
    WorkspaceUnusable = "workspace-unusable",
}

impl BootstrapReport {
    pub(super) fn new(attempted: usize) -> Self {
        Self {
            attempted,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(super) fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
    }

    pub(super) fn finish(mut self) -> Self {
        self.findings.sort_by_key(|finding| finding.agent.is_some());
        self.ok = self
            .findings
            .iter()
            .all(|finding| finding.severity < Severity::Error);
        self
    }
}

impl Finding {
    pub(super) fn ok(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Ok, code, message)
    }

    pub(super) fn info(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, code, message)
    }

    pub(super) fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    pub(super) fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    fn new(severity: Severity, code: Code, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            hints: Vec::new(),
            agent: None,
            config: None,
        }
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Concerns that key of that agent.
    #[must_use]
    pub(super) fn of(mut self, agent: &str, key: &str) -> Self {
        self.agent = Some(agent.to_owned());
        self.config = Some(format!("agents.{agent}.{key}"));
        self
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
