//! A gateway: takes messages of conversations, has Claude Code answer them in a container, and recovers
//! when a conversation has outgrown the model or its session is lost.
//!
//! ```text
//! cargo run -p cordon --example gateway -- REPOSITORY CONVERSATION < message
//! ```
//!
//! `REPOSITORY` has `.cordon/container/Dockerfile` and, if Claude may reach more than its API,
//! `.cordon/network-allowlist.yaml`. `CONVERSATION` is a directory, made with the first message, that
//! holds everything of the conversation. The key is taken from `ANTHROPIC_API_KEY`; `GH_TOKEN` and AWS
//! credentials are masked in the same way where they are set.
//!
//! Against a stand-in for the API, as root (it needs ports that take root), with an image that has the
//! agents (`scripts/setup test` makes one):
//!
//! ```text
//! mkdir -p /tmp/repository/.cordon/container
//! echo 'FROM localhost/cordon-test-agents:1' > /tmp/repository/.cordon/container/Dockerfile
//! cat > /tmp/repository/.cordon/network-allowlist.yaml <<'END'
//! domains:
//!   - { host: api.anthropic.com, private_addresses: true }
//! END
//! cargo run -p origin --example apis          # in another shell; prints what to export here
//! export UPSTREAM_DNS=… UPSTREAM_CA=… ANTHROPIC_API_KEY=sk-ant-anything
//! gateway() { cargo run -q -p cordon --example gateway -- /tmp/repository /tmp/conversation; }
//! echo 'remember: walrus' | gateway
//! echo 'scenario: recall' | gateway           # I recall: walrus
//! echo 'scenario: later-too-long' | gateway   # too long for the session; answered in a fresh one
//! ```

#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program that talks to a person"
)]

use std::{
    env,
    error::Error,
    fs,
    io::{self, Read},
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cordon::{
    Agent, Allowlist, ContentBlock, Entrypoint, ExecutionResult, HostPattern, Level, MaskedSecret,
    Mount, NamePattern, Network, NetworkSandbox, Outcome, PreparedSecrets, Progress, Prompt,
    Recipe, ResourceLimits, Sandbox, SandboxConfig, Secret, SigningCredential, StreamEvent, Task,
    TaskSpec, Upstream, prepare_secrets, read_ca_bundle,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let [repository, conversation] = arguments.as_slice() else {
        return Err("usage: gateway REPOSITORY CONVERSATION < message".into());
    };
    let mut message = String::new();
    io::stdin().read_to_string(&mut message)?;

    let gateway = Gateway::start().await?;
    let reply = tokio::select! {
        reply = gateway.answer(repository, conversation, &message) => reply,
        // Dropping the future of an execution ends its container.
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    gateway.sandbox.shutdown().await;
    println!("{}", reply?);
    Ok(())
}

/// What lives as long as the service does.
struct Gateway {
    sandbox: Sandbox,
}

impl Gateway {
    async fn start() -> Result<Self> {
        let sandbox = Sandbox::new(SandboxConfig {
            upstream: upstream()?,
            on_notice: Some(Arc::new(|notice| {
                if notice.level() == Level::Warning {
                    eprintln!("gateway: {notice}");
                }
            })),
            ..SandboxConfig::default()
        });
        sandbox.startup().await?;
        Ok(Self { sandbox })
    }

    /// One message: from the repository's image to the reply for the person who wrote it.
    async fn answer(
        &self,
        repository: &Path,
        conversation: &Path,
        message: &str,
    ) -> Result<String> {
        let image = self.image(repository).await?;
        let task = self.task(repository, conversation, image)?;

        let session = task.session_store().session_id_for_resume()?;
        let mut result = ask(&task, message, session).await?;
        if result.outcome.needs_fresh_session() {
            let last = task.session_store().last_successful_response()?;
            let prompt = recovery_prompt(result.outcome, last.as_deref(), message);
            eprintln!(
                "gateway: {}; trying again in a fresh session",
                result.outcome
            );
            result = ask(&task, &prompt, None).await?;
        }
        Ok(reply(&result))
    }

    /// The image of the repository's own Dockerfile, built where it has changed or is old.
    async fn image(&self, repository: &Path) -> Result<String> {
        let container = repository.join(".cordon/container");
        let recipe = Recipe::read(&container.join("Dockerfile"), &container)?;
        let entrypoint = Entrypoint::agent(Agent::Claude.program());
        let progress = |progress: Progress<'_>| match progress {
            Progress::Building { tag, .. } => eprintln!("gateway: building {tag}"),
            Progress::Waiting { tag } => eprintln!("gateway: waiting for a build of {tag}"),
            Progress::Line(_) => {}
        };
        let image = self.sandbox.ensure_image(&recipe, &entrypoint, progress);
        Ok(image.await?)
    }

    fn task(&self, repository: &Path, conversation: &Path, image: String) -> Result<Task> {
        let name = conversation.file_name().unwrap_or_default();
        let id = name.to_string_lossy().parse()?;
        let secrets = secrets()?;
        Ok(self.sandbox.create_task(TaskSpec {
            mounts: mounts(conversation)?,
            env: secrets.env.into_iter().collect(),
            network_log_dir: Some(conversation.to_owned()),
            network: Network::Sandboxed(NetworkSandbox {
                allowlist: allowlist(repository)?,
                replacements: secrets.replacements,
            }),
            limits: ResourceLimits {
                timeout: Some(Duration::from_secs(300)),
                ..ResourceLimits::default()
            },
            ..TaskSpec::new(Agent::Claude, id, image, conversation)
        })?)
    }
}

async fn ask(task: &Task, text: &str, session: Option<String>) -> Result<ExecutionResult> {
    let prompt = Prompt::new(text).resume(session).model("sonnet");
    Ok(task.execute(prompt, show).await?)
}

/// What a person who watches wants to see of an event.
fn show(event: &StreamEvent) {
    for block in event.blocks() {
        if let ContentBlock::ToolUse { name, .. } = block {
            eprintln!("gateway: Claude uses {name}");
        }
    }
}

/// What the person gets to read, whatever happened.
fn reply(result: &ExecutionResult) -> String {
    let why = result.error_summary.as_deref().unwrap_or("no reason known");
    match result.outcome {
        Outcome::Success => result.response_text.clone(),
        Outcome::Timeout => "I ran out of time. What I did is kept; write again to go on.".into(),
        Outcome::Stopped => "I was stopped. What I did is kept; write again to go on.".into(),
        Outcome::RateLimited {
            retry_after: Some(wait),
        } => format!("I have to slow down; write again in {} s.", wait.as_secs()),
        Outcome::RateLimited { retry_after: None } | Outcome::Overloaded => {
            "My model cannot answer now; write again later.".into()
        }
        Outcome::BudgetExceeded => "This takes more than I may spend.".into(),
        Outcome::AuthFailed => format!("My key is refused: {why}"),
        Outcome::OutOfMemory => "My container ran out of memory.".into(),
        Outcome::PromptTooLong => "This is too long for me.".into(),
        Outcome::SessionCorrupted | Outcome::ContainerFailed => format!("I failed: {why}"),
    }
}

/// Tells a fresh session what it has to know of the one that cannot go on.
fn recovery_prompt(outcome: Outcome, last: Option<&str>, message: &str) -> String {
    let why = match outcome {
        Outcome::PromptTooLong => "had become too long",
        _ => "could not be continued",
    };
    let before = match last {
        Some(last) => format!("Your last reply in it was:\n\n{last}\n\n"),
        None => String::new(),
    };
    format!("Your earlier session {why}; this is a fresh one. {before}The message is:\n\n{message}")
}

/// The conversation's own directories. The agent's state is beside them; the sandbox mounts that.
fn mounts(conversation: &Path) -> Result<Vec<Mount>> {
    let mut mounts = Vec::new();
    for name in ["workspace", "inbox", "outbox", "storage"] {
        fs::create_dir_all(conversation.join(name))?;
        let host_path = fs::canonicalize(conversation.join(name))?;
        mounts.push(Mount::read_write(host_path, format!("/{name}")));
    }
    Ok(mounts)
}

/// What the repository allows, and Claude's API.
fn allowlist(repository: &Path) -> Result<Allowlist> {
    let mut allowlist = match fs::read_to_string(repository.join(".cordon/network-allowlist.yaml"))
    {
        Ok(text) => Allowlist::from_yaml(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Allowlist::default(),
        Err(error) => return Err(error.into()),
    };
    for host in Agent::Claude.api_hosts() {
        allowlist.allow_host(host)?;
    }
    Ok(allowlist)
}

/// The gateway's secrets. What is not set gives no variable and no rule.
fn secrets() -> Result<PreparedSecrets> {
    let value = |name: &str| Secret::new(env::var(name).unwrap_or_default());
    let scopes = |hosts: &[&str]| -> Result<Vec<HostPattern>> {
        let parsed = hosts.iter().map(|host| HostPattern::parse(host));
        Ok(parsed.collect::<std::result::Result<_, _>>()?)
    };
    let masked = vec![
        MaskedSecret::new(
            "ANTHROPIC_API_KEY",
            value("ANTHROPIC_API_KEY"),
            scopes(&["api.anthropic.com"])?,
            vec![NamePattern::new("x-api-key")],
        ),
        MaskedSecret::new(
            "GH_TOKEN",
            value("GH_TOKEN"),
            scopes(&["api.github.com", "*.githubusercontent.com"])?,
            vec![NamePattern::new("authorization")],
        ),
    ];
    let signing = SigningCredential {
        access_key_id_env_var: "AWS_ACCESS_KEY_ID".into(),
        access_key_id: value("AWS_ACCESS_KEY_ID"),
        secret_access_key_env_var: "AWS_SECRET_ACCESS_KEY".into(),
        secret_access_key: value("AWS_SECRET_ACCESS_KEY"),
        session_token_env_var: Some("AWS_SESSION_TOKEN".into()),
        session_token: env::var("AWS_SESSION_TOKEN").ok().map(Secret::new),
        scopes: scopes(&["*.amazonaws.com"])?,
        allow_credential_minting: false,
        allow_foreign_credentials: false,
    };
    Ok(prepare_secrets(masked, vec![signing])?)
}

/// How the world is reached: as the host does it, unless the surroundings say otherwise.
fn upstream() -> Result<Upstream> {
    let mut upstream = Upstream::default();
    if let Ok(address) = env::var("UPSTREAM_DNS") {
        let address: IpAddr = address.parse()?;
        upstream.dns_servers.push((address, 53).into());
    }
    if let Some(bundle) = env::var_os("UPSTREAM_CA") {
        upstream.extra_roots = read_ca_bundle(Path::new(&bundle))?;
    }
    Ok(upstream)
}
