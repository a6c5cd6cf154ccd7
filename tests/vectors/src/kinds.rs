//! The kinds of case: one module for each, known by the name of its file.

mod allowlist;
mod allowlist_json;
mod allowlist_yaml;
mod basic_auth;
mod claude_events;
mod claude_extract;
mod claude_output;
mod dns;
mod event_log;
mod flow;
mod glob;
mod image;
mod image_build;
mod log_lines;
mod network_log;
mod prepare_secrets;
mod real_proxy;
mod replacements;
mod secrets_replace;
mod session_store;
mod sigv4;
mod sigv4_aws_reference;
mod sigv4_chunked;
mod surrogate;

use crate::{Case, Check, Unreadable};

/// What the cases of a file are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    name: &'static str,
    check: fn(&mut Case) -> Result<Check, Unreadable>,
}

impl Kind {
    /// The kind of the file with this name, without its ending.
    pub(crate) fn of(name: &str) -> Option<Self> {
        KINDS.iter().find(|kind| kind.name == name).copied()
    }

    /// The names of all kinds.
    #[cfg(test)]
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Runs one case.
    pub(crate) fn check(&self, case: &mut Case) -> Result<Check, Unreadable> {
        (self.check)(case)
    }
}

const KINDS: &[Kind] = &[
    Kind {
        name: "allowlist",
        check: allowlist::check,
    },
    Kind {
        name: "allowlist_json",
        check: allowlist_json::check,
    },
    Kind {
        name: "allowlist_yaml",
        check: allowlist_yaml::check,
    },
    Kind {
        name: "basic_auth",
        check: basic_auth::check,
    },
    Kind {
        name: "claude_events",
        check: claude_events::check,
    },
    Kind {
        name: "claude_extract",
        check: claude_extract::check,
    },
    Kind {
        name: "claude_output",
        check: claude_output::check,
    },
    Kind {
        name: "dns",
        check: dns::check,
    },
    Kind {
        name: "event_log",
        check: event_log::check,
    },
    Kind {
        name: "glob",
        check: glob::check,
    },
    Kind {
        name: "image",
        check: image::check,
    },
    Kind {
        name: "image_build",
        check: image_build::check,
    },
    Kind {
        name: "log_lines",
        check: log_lines::check,
    },
    Kind {
        name: "network_log",
        check: network_log::check,
    },
    Kind {
        name: "prepare_secrets",
        check: prepare_secrets::check,
    },
    Kind {
        name: "proxy_flow",
        check: flow::check,
    },
    Kind {
        name: "real_proxy",
        check: real_proxy::check,
    },
    Kind {
        name: "secrets_replace",
        check: secrets_replace::check,
    },
    Kind {
        name: "session_store",
        check: session_store::check,
    },
    Kind {
        name: "sigv4",
        check: sigv4::check,
    },
    Kind {
        name: "sigv4_aws_reference",
        check: sigv4_aws_reference::check,
    },
    Kind {
        name: "sigv4_chunked",
        check: sigv4_chunked::check,
    },
    Kind {
        name: "sigv4_flow",
        check: flow::check,
    },
    Kind {
        name: "surrogate",
        check: surrogate::check,
    },
];
