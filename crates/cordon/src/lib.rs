//! Runs commands and coding agents in a container that has no network but one audited door and never
//! holds a real credential.
//!
//! ```no_run
//! # async fn example() -> Result<(), cordon::SandboxError> {
//! use cordon::{Allowlist, CommandSpec, Mount, Network, NetworkSandbox, Sandbox, SandboxConfig, Streams};
//!
//! let sandbox = Sandbox::new(SandboxConfig::default());
//! sandbox.startup().await?;
//! let task = sandbox.create_command_task(CommandSpec {
//!     mounts: vec![Mount::read_write("work", "/workspace")],
//!     network: Network::Sandboxed(NetworkSandbox {
//!         allowlist: Allowlist::from_yaml("domains: [api.example.com]")?,
//!         ..NetworkSandbox::default()
//!     }),
//!     ..CommandSpec::new("localhost/debian:12", ["make", "test"])
//! })?;
//! let result = task.execute(Streams::captured()).await?;
//! println!("{} after {:?}", result.exit_code, result.duration);
//! sandbox.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! An error is trouble with the infrastructure; whatever a command does is a result. Nothing here
//! prints, and nothing reads flags.
//!
//! # Where to look
//!
//! | for | see |
//! | --- | --- |
//! | the manual, from a first command to a service | [`guide`] |
//! | what tasks share | [`Sandbox`], [`SandboxConfig`] |
//! | commands | [`CommandSpec`], [`CommandTask`], [`CommandResult`] |
//! | agents | [`TaskSpec`], [`Task`], [`Prompt`], [`ExecutionResult`], [`Outcome`] |
//! | what may be reached, and what was | [`Network`], [`Allowlist`], [`NetworkLog`] |
//! | secrets | [`MaskedSecret`], [`SigningCredential`], [`prepare_secrets`] |
//! | images | [`Recipe`], [`Entrypoint`], [`BuildNetwork`] |
//! | contexts | [`ContextId`], [`SessionStore`] |
//! | limits and profiles | [`ResourceLimits`], [`Budget`], [`Profile`] |
//! | trouble | [`SandboxError`], [`Notice`] |
//! | the configuration file | [`SandboxFile`], [`ConfigSource`] |
//! | callers without an asynchronous runtime | [`blocking`] |
//! | containers that live as long as a session | [`modes`] |
//!
//! `examples/gateway.rs` is a whole program that hands messages to an agent.

pub mod blocking;
mod build;
mod command;
mod config;
mod context;
mod directories;
pub mod doctor;
mod error;
mod file;
mod git;
pub mod guide;
mod hardened;
mod images;
mod leftovers;
mod limits;
mod live;
pub mod modes;
mod mount;
mod notice;
mod origin;
mod owner;
mod place;
mod profile;
mod run;
mod sandbox;
mod shield;
mod streams;
mod task;
mod topology;
mod trust;
mod user;

pub use build::{BuildMode, BuildNetwork, BuildSandbox, UnknownBuildMode};
pub use command::{CommandResult, CommandSpec, CommandTask, ContainerEnv, Network, NetworkSandbox};
pub use config::{MaxImageAge, OnNotice, Pull, SandboxConfig, StartLimit};
pub use context::{ContextId, InvalidContextId};
pub use cordon_agents::{
    Agent, Budget, ContentBlock, Credential, Effort, Error as AgentError, EventKind, Outcome,
    ResultSummary, StreamEvent, Usage, extract_response_text, extract_result_summary,
    extract_session_id, parse_event,
};
pub use cordon_door::{Before, Error as DoorError};
pub use cordon_engine::{Choice as EngineChoice, Error as EngineError, Kind as EngineKind};
pub use cordon_image::{
    Age as ImageAge, Entrypoint, Error as ImageBuildError, Loaded as LoadedImages, Progress,
    Pruned as PrunedImages, Recipe, Stored as StoredImage, Tags as ImageTags,
};
pub use cordon_policy::{
    Allowlist, AllowlistDomain, AllowlistError, AllowlistUrlPattern, HostPattern, NamePattern,
    parse_allowlist_yaml, serialize_allowlist_json,
};
pub use cordon_proxy::{
    Bypass, Error as ProxyError, Event, HttpProxy, Limits as ProxyLimits, Location, NetworkLog,
    OnRecord, Place, Record, RequestRecord, Summary, Upstream, Verdict, read_ca_bundle,
};
pub use cordon_secrets::{
    MaskedSecret, PreparedSecrets, Secret, SecretReplacements, SecretsError, SigningCredential,
    prepare_secrets,
};
pub use cordon_session::{
    ContextEntry, Error as SessionError, Loaded as LoadedSession, Pruned as PrunedContexts,
    ReplyUpdate, Retention, SessionMetadata, SessionReply, SessionStore, contexts,
    prune as prune_contexts,
};
pub use cordon_shell::{InvalidProgram, Reason as RefusalReason, Refusal};
pub use directories::Directories;
pub use error::SandboxError;
pub use file::{FileError, FileErrorKind, FileNotice, HostEnv, PreparedEnv, Resolved, SandboxFile};
pub use git::{CloneSource, GitClone, GitError, GitSnapshot, clone_workspace};
pub use hardened::{HardenedConfig, SandboxedExecutor, SandboxedLlmClient};
pub use leftovers::{Cleaned, Kept, Leftover, LeftoverKind};
pub use limits::{Cpus, InvalidLimit, Memory, Pids, ResourceLimits};
pub use mount::{InvalidMount, Mount, MountError};
pub use notice::{Level, Notice};
pub use origin::ConfigSource;
pub use profile::Profile;
pub use sandbox::Sandbox;
pub use streams::{Input, OnOutput, Output, Stream, Streams};
pub use task::{ExecutionResult, Prompt, Task, TaskSpec};
pub use topology::{Topology, UnknownTopology, Wiring};
