//! The manual: from a first command to a service that serves agents.
//!
//! 1. [A sandbox](#a-sandbox)
//! 2. [Commands](#commands)
//! 3. [Policy](#policy)
//! 4. [Secrets](#secrets)
//! 5. [Images](#images)
//! 6. [Agents](#agents)
//! 7. [Contexts and outcomes](#contexts-and-outcomes)
//! 8. [Limits](#limits)
//! 9. [Errors, notices and hints](#errors-notices-and-hints)
//! 10. [Without an asynchronous runtime](#without-an-asynchronous-runtime)
//! 11. [Names of the Python library](#names-of-the-python-library)
//!
//! # A sandbox
//!
//! A [`Sandbox`](crate::Sandbox) is what tasks share: the engine, the certificate authority, the directories. One for a
//! process is enough; every method takes `&self`, and tasks run side by side.
//!
//! ```no_run
//! # async fn example() -> Result<(), cordon::SandboxError> {
//! use cordon::{EngineChoice, EngineKind, Sandbox, SandboxConfig};
//!
//! let sandbox = Sandbox::new(SandboxConfig {
//!     engine: EngineChoice::Kind(EngineKind::Podman),
//!     ..SandboxConfig::default()
//! });
//! sandbox.startup().await?; // finds the engine, removes what dead owners left
//! // … tasks …
//! sandbox.shutdown().await; // stops what runs, and waits until it is gone
//! # Ok(())
//! # }
//! ```
//!
//! A container ends with the process that started it, however that ends. What a killed process left on disk is removed by
//! the next `startup`; what a living one uses is never touched.
//!
//! # Commands
//!
//! A [`CommandSpec`](crate::CommandSpec) says what to run and what it sees; a [`CommandTask`](crate::CommandTask) runs it,
//! as often as you like and once at a time.
//!
//! ```no_run
//! # async fn example(sandbox: &cordon::Sandbox) -> Result<(), cordon::SandboxError> {
//! use cordon::{CommandSpec, Mount, Streams};
//!
//! let task = sandbox.create_command_task(CommandSpec {
//!     mounts: vec![Mount::read_write("/srv/jobs/17", "/workspace")],
//!     env: vec![("CI".into(), "true".into())],
//!     ..CommandSpec::new("localhost/ci:1", ["make", "test"])
//! })?;
//! let result = task.execute(Streams::captured()).await?;
//! if result.exit_code != 0 {
//!     eprint!("{}", String::from_utf8_lossy(&result.stderr));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - Mounts are canonical paths: a symbolic link on the way is refused, as are `/`, engine sockets and the sandbox's own
//!   directories. [`SandboxConfig::allowed_roots`](crate::SandboxConfig::allowed_roots) narrows it further.
//! - Values of variables stand in no argument list, no log and nothing that the engine keeps.
//! - [`CommandTask::stop`](crate::CommandTask::stop) may be called from anywhere: `SIGTERM`, five seconds, `SIGKILL`. When
//!   the future of an execution is dropped, its container ends too.
//! - [`Profile`](crate::Profile) says how far the container is closed beyond its door.
//! - [`Streams`](crate::Streams) connects input and output: kept, passed on, or handed over piece by piece.
//!
//! # Policy
//!
//! [`Network::None`](crate::Network::None) is the default: there is nothing to reach. With
//! [`Network::Sandboxed`](crate::Network::Sandboxed) every request meets an [`Allowlist`](crate::Allowlist) before anything is
//! dialled.
//!
//! ```
//! use cordon::{Allowlist, Network, NetworkSandbox};
//!
//! let allowlist = Allowlist::from_yaml("
//! domains: [api.example.com, '*.cdn.example.com']
//! url_prefixes:
//!   - { host: git.example.com, path: /my-team/*, methods: [GET, POST] }
//! ")?;
//! let network = Network::Sandboxed(NetworkSandbox { allowlist, ..NetworkSandbox::default() });
//! # let _ = network;
//! # Ok::<(), cordon::AllowlistError>(())
//! ```
//!
//! A list that does not parse is an error; there is no default allow. Requests are recorded in
//! [`CommandSpec::network_log`](crate::CommandSpec::network_log), one line each, and handed to
//! [`on_network`](crate::CommandSpec::on_network) as they happen. [`NetworkLog`](crate::NetworkLog) reads them back.
//! [`CommandTask::replace_allowlist`](crate::CommandTask::replace_allowlist) changes the policy of a running command.
//! `docs/configuration.md` of the project has every key.
//!
//! # Secrets
//!
//! The container gets look-alikes. [`prepare_secrets`](crate::prepare_secrets) draws them; the proxy puts the real value in
//! their place on the way to its own hosts, and takes it out of what comes back.
//!
//! ```
//! use cordon::{HostPattern, MaskedSecret, NamePattern, Secret, prepare_secrets};
//!
//! let token = MaskedSecret::new(
//!     "GH_TOKEN",
//!     Secret::new("ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
//!     vec![HostPattern::parse("api.github.com")?],
//!     vec![NamePattern::new("authorization")],
//! );
//! let prepared = prepare_secrets(vec![token], vec![])?;
//! let look_alike = &prepared.env["GH_TOKEN"];
//! assert!(look_alike.starts_with("ghp_") && look_alike != "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
//! // `prepared.env` goes into the spec's variables, `prepared.replacements` into its `NetworkSandbox`.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A look-alike on its way to another host is an alarm: the request is refused and recorded. AWS requests are signed again:
//! [`SigningCredential`](crate::SigningCredential). A value that is renewed goes in with
//! [`CommandTask::replace_secret`](crate::CommandTask::replace_secret). [`SandboxFile`](crate::SandboxFile) reads all of this
//! from `.cordon/sandbox.yaml`.
//!
//! # Images
//!
//! ```no_run
//! # async fn example(sandbox: &cordon::Sandbox) -> Result<(), cordon::SandboxError> {
//! use cordon::{BuildNetwork, BuildSandbox, Allowlist, Entrypoint, Recipe};
//!
//! let recipe = Recipe::read("container/Dockerfile".as_ref(), "container".as_ref())?;
//! let network = BuildNetwork::Sandboxed(BuildSandbox {
//!     allowlist: Allowlist::from_yaml("domains: [mirror.example.com]")?,
//!     ..BuildSandbox::default()
//! });
//! let image = sandbox
//!     .ensure_image_on(&network, &recipe, &Entrypoint::passthrough(), |_| {})
//!     .await?;
//! println!("run in {image}");
//! # Ok(())
//! # }
//! ```
//!
//! An image is named by what it is made of, found again by that name, and built anew when it is older than
//! [`MaxImageAge`](crate::MaxImageAge). Builds of one image wait for each other, in other processes too. A sandboxed
//! build reaches what its own policy allows and nothing else; [`Sandbox::ensure_image`](crate::Sandbox::ensure_image) takes what
//! the sandbox's configuration says, which by itself is the host's network.
//!
//! # Agents
//!
//! A [`TaskSpec`](crate::TaskSpec) names an [`Agent`](crate::Agent), a context, an image and a directory for the context.
//! Prompts go in over standard input; events come out typed, as they happen.
//!
//! ```no_run
//! # async fn example(sandbox: &cordon::Sandbox) -> Result<(), cordon::SandboxError> {
//! use cordon::{Agent, ContentBlock, Mount, Prompt, TaskSpec};
//!
//! let task = sandbox.create_task(TaskSpec {
//!     mounts: vec![Mount::read_write("/srv/conversations/42/workspace", "/workspace")],
//!     ..TaskSpec::new(Agent::Claude, "conv-42".parse()?, "localhost/agents:1", "/srv/conversations/42")
//! })?;
//! let resume = task.session_store().session_id_for_resume()?;
//! let prompt = Prompt::new("Fix the failing test.").resume(resume).model("sonnet");
//! let result = task
//!     .execute(prompt, |event| {
//!         for block in event.blocks() {
//!             if let ContentBlock::ToolUse { name, .. } = block {
//!                 println!("uses {name}");
//!             }
//!         }
//!     })
//!     .await?;
//! println!("{}", result.response_text);
//! # Ok(())
//! # }
//! ```
//!
//! Its API and its key are policy and secrets like any other: [`Agent::api_hosts`](crate::Agent::api_hosts) and
//! [`Agent::credentials`](crate::Agent::credentials) say which. The program comes from the image, or from the host with
//! [`TaskSpec::agent_binary`](crate::TaskSpec::agent_binary). `examples/gateway.rs` is a whole service.
//!
//! # Contexts and outcomes
//!
//! What lasts across executions is in the context's directory: `context.json` with the replies, `events.jsonl` with every
//! event, the agent's own state, and the network log. [`SessionStore`](crate::SessionStore) reads it, in other processes too and
//! while it is written. A kill at any byte leaves the old file or the new one. One context has one execution at a time; a
//! second one gets [`SessionError::InUse`](crate::SessionError::InUse).
//!
//! How an execution ended is one value:
//!
//! ```
//! use cordon::Outcome;
//!
//! fn next_step(outcome: Outcome) -> &'static str {
//!     match outcome {
//!         Outcome::Success => "use `response_text`",
//!         Outcome::PromptTooLong | Outcome::SessionCorrupted => "try again with `resume(None)` and a word on what was",
//!         Outcome::RateLimited { .. } | Outcome::Overloaded => "wait; the session can go on",
//!         Outcome::Timeout | Outcome::Stopped | Outcome::BudgetExceeded => "say so; the session can go on",
//!         Outcome::AuthFailed => "look at the key",
//!         Outcome::OutOfMemory => "give it more memory",
//!         Outcome::ContainerFailed => "show `error_summary`",
//!     }
//! }
//! assert!(Outcome::SessionCorrupted.needs_fresh_session());
//! # next_step(Outcome::Success);
//! ```
//!
//! It is decided by exit status, the agent's result and the API's error, and never by words that a model or a tool said.
//!
//! # Limits
//!
//! ```
//! use std::time::Duration;
//!
//! use cordon::{Budget, ResourceLimits};
//!
//! let limits = ResourceLimits {
//!     timeout: Some(Duration::from_secs(600)), // of everything, reading its input included
//!     memory: Some("4g".parse()?),             // without swap
//!     cpus: Some("2".parse()?),
//!     pids: Some("256".parse()?),
//! };
//! let budget = Budget { max_cost_usd: Some(2.5), max_turns: Some(40) }; // agents; enforced while they run
//! # let _ = (limits, budget);
//! # Ok::<(), cordon::InvalidLimit>(())
//! ```
//!
//! What the engine cannot enforce on this host is said in a notice. Output that is kept is the end of it, events in memory are
//! the last ones, and a single endless line is cut: memory does not grow with what a container sends.
//!
//! # Errors, notices and hints
//!
//! A [`SandboxError`](crate::SandboxError) means that the sandbox could not do its work: no engine, a mount that is refused, an
//! image that does not build. Whatever a command or agent does is a result. [`hint`](crate::SandboxError::hint) says what to
//! type or look at next. Whatever is weakened, adapted or cleaned up is a [`Notice`](crate::Notice) for
//! [`SandboxConfig::on_notice`](crate::SandboxConfig::on_notice), and never happens in silence.
//!
//! ```no_run
//! # async fn example(sandbox: &cordon::Sandbox) {
//! if let Err(error) = sandbox.startup().await {
//!     eprintln!("error: {error}");
//!     if let Some(hint) = error.hint() {
//!         eprintln!("hint: {hint}");
//!     }
//! }
//! # }
//! ```
//!
//! # Without an asynchronous runtime
//!
//! [`blocking`](crate::blocking) has the same types with methods that wait.
//!
//! # Names of the Python library
//!
//! Where a program was written for the library whose names these are, this is what they are called here. What is not listed has
//! the same name.
//!
//! | there | here |
//! | --- | --- |
//! | `ContainerEnv.variables` | [`TaskSpec::env`](crate::TaskSpec::env), a [`ContainerEnv`](crate::ContainerEnv) |
//! | `MaskedSecret.real_value` | [`MaskedSecret::value`](crate::MaskedSecret::value) |
//! | `PreparedSecrets.env_vars` | [`PreparedSecrets::env`](crate::PreparedSecrets::env) |
//! | `NetworkSandboxConfig` | [`NetworkSandbox`](crate::NetworkSandbox) in [`Network::Sandboxed`](crate::Network::Sandboxed) |
//! | `SandboxConfig.container_command`, `upstream_dns` | [`engine`](crate::SandboxConfig::engine), [`upstream`](crate::SandboxConfig::upstream) |
//! | `SandboxConfig.max_image_age_hours` | [`max_image_age`](crate::SandboxConfig::max_image_age) |
//! | `SandboxConfig.proxy_dir` | none: the proxy is part of the library |
//! | `ensure_image(dockerfile, context_files)` | [`Recipe`](crate::Recipe) holds both; [`Sandbox::ensure_image`](crate::Sandbox::ensure_image) |
//! | `create_task(task_id, …)`, `Task.task_id` | [`TaskSpec::execution_context_id`](crate::TaskSpec::execution_context_id), [`Task::execution_context_id`](crate::Task::execution_context_id) |
//! | `create_task(image_tag=, network_sandbox=, timeout_seconds=)` | [`image`](crate::TaskSpec::image), [`network`](crate::TaskSpec::network), [`limits`](crate::TaskSpec::limits) |
//! | `execute(prompt, session_id=, model=, on_event=)` | [`Prompt`](crate::Prompt) and a closure |
//! | `ExecutionResult.duration_ms` | [`duration`](crate::ExecutionResult::duration) |
//! | `get_session_id_for_resume`, `get_last_successful_response`, `get_model` | without `get_`, on [`SessionStore`](crate::SessionStore) |
//! | `SessionReply.events` | [`SessionStore::reply_events`](crate::SessionStore::reply_events) |
//! | `SandboxError`, `ImageBuildError`, `ProxyError` | the same; the latter two are sources of the first |
//!
//! ```
//! // Everything that had a name has one.
//! use cordon::{
//!     Allowlist, AllowlistDomain, AllowlistUrlPattern, ContainerEnv, ExecutionResult, ImageBuildError, MaskedSecret,
//!     Mount, NetworkLog, NetworkSandbox, Outcome, PreparedSecrets, ProxyError, ResultSummary, Sandbox, SandboxConfig,
//!     SandboxError, SecretReplacements, SessionMetadata, SessionReply, SessionStore, SigningCredential, StreamEvent, Task,
//!     Usage, extract_response_text, extract_result_summary, extract_session_id, parse_allowlist_yaml, parse_event,
//!     prepare_secrets, serialize_allowlist_json,
//! };
//!
//! let events: Vec<StreamEvent> = [
//!     r#"{"type":"system","subtype":"init","session_id":"s-1"}"#,
//!     r#"{"type":"result","session_id":"s-1","is_error":false,"result":"Done.","num_turns":1}"#,
//! ]
//! .iter()
//! .filter_map(|line| parse_event(line))
//! .collect();
//! assert_eq!(extract_session_id(&events).as_deref(), Some("s-1"));
//! assert_eq!(extract_response_text(&events), "Done.");
//! assert_eq!(extract_result_summary(&events).map(|summary: ResultSummary| summary.num_turns), Some(1));
//! assert_eq!(Outcome::PromptTooLong.name(), "prompt_too_long");
//!
//! let list: Allowlist = parse_allowlist_yaml("domains: [a.example]")?;
//! assert!(serialize_allowlist_json(&list).contains("a.example"));
//! assert!(!NetworkLog::new("/nowhere/network-sandbox.log").exists());
//! assert!(SessionStore::new("/nowhere").session_id_for_resume()?.is_none());
//! let _: ContainerEnv = vec![("CI".into(), "true".into())];
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
