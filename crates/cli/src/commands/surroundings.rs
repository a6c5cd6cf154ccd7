//! What every run in a container shares: its image, what it sees, what it may reach.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use cordon::{
    Allowlist, BuildMode, BuildNetwork, BuildSandbox, ConfigSource, Entrypoint, HostEnv, HttpProxy,
    MaskedSecret, MaxImageAge, Mount, Network, NetworkSandbox, PreparedEnv, Pull, Recipe,
    ResourceLimits, Sandbox, SandboxConfig, SandboxError, SandboxFile, StartLimit, Upstream,
};

use crate::{
    args::Container,
    commands::{
        interrupts::Interrupts,
        tend::{Tend, Watched},
        workspace::Workspace,
    },
    exit::Exit,
    printer::{Hinted, Printer},
};

/// A sandbox that has been started, and the image to run in.
pub(crate) struct Ready {
    pub(crate) sandbox: Sandbox,
    pub(crate) image: String,
}

/// Starts a sandbox and sees to the image; a signal on the way ends it all, as nothing runs yet.
pub(crate) async fn prepare(
    args: &Container,
    rules: &ConfigSource,
    build: BuildNetwork,
    interrupts: &mut Interrupts,
    printer: &Printer,
) -> anyhow::Result<Result<Ready, Exit>> {
    let recipe = recipe(args, rules).await?;
    let sandbox = Sandbox::new(SandboxConfig {
        build_network: build,
        ..config(args, printer)?
    });
    let work = async {
        sandbox.startup().await?;
        match recipe {
            None => Ok(args.image.clone().unwrap_or_default()),
            Some(recipe) => {
                let entrypoint = Entrypoint::passthrough();
                sandbox
                    .ensure_image(&recipe, &entrypoint, |progress| printer.build(progress))
                    .await
            }
        }
    };
    let image = tokio::select! {
        image = work => image?,
        number = interrupts.next() => return Ok(Err(Exit::Signal(number))),
    };
    Ok(Ok(Ready { sandbox, image }))
}

fn config(args: &Container, printer: &Printer) -> anyhow::Result<SandboxConfig> {
    let hours = |hours| MaxImageAge(Duration::from_secs(hours * 3600));
    let seconds = |seconds| StartLimit(Duration::from_secs(seconds));
    Ok(SandboxConfig {
        engine: args.engine.clone(),
        topology: args.topology,
        runtime: args.runtime.clone(),
        upstream: upstream(args)?,
        pull: if args.no_pull {
            Pull::Never
        } else {
            Pull::Missing
        },
        start_limit: args.start_limit.map_or_else(StartLimit::default, seconds),
        max_image_age: args.max_image_age.map_or_else(MaxImageAge::default, hours),
        on_notice: Some(printer.notices()),
        ..SandboxConfig::default()
    })
}

/// The recipe of the image to be built; `None` where an image is named.
pub(crate) async fn recipe(
    args: &Container,
    rules: &ConfigSource,
) -> anyhow::Result<Option<Recipe>> {
    let named = args.image.as_ref().is_some_and(|image| !image.is_empty());
    let dockerfile = match &args.dockerfile {
        Some(path) => path.as_path(),
        None if named => return Ok(None),
        None if rules.has(Path::new(DEFAULT_DOCKERFILE)).await? => Path::new(DEFAULT_DOCKERFILE),
        None => {
            let hint =
                format!("name one with --image or in CORDON_IMAGE, or write {DEFAULT_DOCKERFILE}");
            return Err(Hinted::new("no image to run in", hint).into());
        }
    };
    let context = build_context(args.context_dir.as_deref(), dockerfile);
    Ok(Some(rules.recipe(dockerfile, context).await?))
}

/// What a build may copy from.
pub(crate) fn build_context<'a>(named: Option<&'a Path>, dockerfile: &'a Path) -> &'a Path {
    match (named, dockerfile.parent()) {
        (Some(directory), _) => directory,
        (None, Some(parent)) if parent != Path::new("") => parent,
        (None, _) => Path::new("."),
    }
}

/// What the command gets beside its mounts, from the flags and the configuration file together.
pub(crate) struct Settings {
    pub(crate) env: Vec<(String, String)>,
    pub(crate) network: Network,
    /// What the build of the image may reach.
    pub(crate) build: BuildNetwork,
    pub(crate) limits: ResourceLimits,
    pub(crate) tend: Tend,
}

/// What a run brings along by itself.
#[derive(Default)]
pub(crate) struct Own {
    /// Secrets, unless the configuration file sets the same variables.
    pub(crate) secrets: Vec<MaskedSecret>,
    /// Hosts that may be reached in any case.
    pub(crate) hosts: &'static [&'static str],
    /// Where the requests of a build are written.
    pub(crate) build_log: Option<PathBuf>,
}

/// Flags win over the file, and surrogates over everything: what is masked stays masked.
pub(crate) async fn settings(
    args: &Container,
    workspace: &Workspace,
    mounts: &[Mount],
    own: Own,
    printer: &Printer,
) -> anyhow::Result<Settings> {
    let rules = workspace.rules();
    let file = config_file(args.config.as_deref(), rules).await?;
    workspace.judge(&file, mounts, printer)?;
    let mut resolved = file
        .resolve(&HostEnv::current())
        .await
        .map_err(SandboxError::from)?;
    for notice in &resolved.notices {
        printer.file_notice(notice);
    }
    if let Some(secrets) = &resolved.secrets_file {
        keep_out(secrets, mounts)?;
    }
    let configured: Vec<_> = resolved
        .masked
        .iter()
        .map(|secret| secret.env_var.clone())
        .collect();
    let fresh = own
        .secrets
        .into_iter()
        .filter(|secret| !configured.contains(&secret.env_var));
    resolved.masked.extend(fresh);
    let (enabled, written) = (resolved.network, resolved.allowlist.clone());
    let mode = args.build_network.or(resolved.build_network);
    let mode = mode.unwrap_or_default();
    let limits = limits(args, &resolved.limits);
    let prepared = resolved.prepare().map_err(SandboxError::from)?;

    let env = environment(&prepared, variables(args, printer))?;
    let (path, must_exist) = allowlist_path(args.allowlist.as_deref(), written);
    let hosts = args.allow.iter().map(String::as_str);
    let source = Watched {
        path,
        hosts: hosts
            .chain(own.hosts.iter().copied())
            .map(str::to_owned)
            .collect(),
    };
    let sandboxed = enabled && !args.no_network;
    let allowlist = if sandboxed || mode == BuildMode::Sandboxed {
        let text = allowlist_text(rules, &source.path, must_exist).await?;
        allowlist(&source, &text)?
    } else {
        Allowlist::default()
    };
    let build = build_network(mode, || BuildSandbox {
        allowlist: allowlist.clone(),
        network_log: own.build_log,
        on_network: args.network_log_live.then(|| printer.network()),
    });
    let watched = (sandboxed && args.watch_allowlist).then_some(source);
    let network = match (args.no_network, enabled) {
        (true, _) => Network::None,
        (false, true) => Network::Sandboxed(NetworkSandbox {
            allowlist,
            replacements: prepared.replacements,
        }),
        (false, false) => Network::Unrestricted,
    };
    Ok(Settings {
        env,
        network,
        build,
        limits,
        tend: Tend { watched, file },
    })
}

/// The variables of the file, and over them those that were given; what is masked stays masked.
fn environment(
    prepared: &PreparedEnv,
    given: Vec<(String, String)>,
) -> anyhow::Result<Vec<(String, String)>> {
    let surrogates: Vec<_> = prepared
        .replacements
        .surrogates()
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut env = prepared.env.clone();
    for (name, value) in given {
        if prepared.redactor.redact(&value) != value {
            let message = format!("the value of {name} holds a secret that is masked");
            return Err(Hinted::new(
                message,
                "leave it out; the container gets the secret's look-alike",
            )
            .into());
        }
        if !surrogates.contains(&name) {
            env.retain(|(other, _)| *other != name);
            env.push((name, value));
        }
    }
    Ok(env)
}

pub(crate) fn build_network(
    mode: BuildMode,
    policy: impl FnOnce() -> BuildSandbox,
) -> BuildNetwork {
    match mode {
        BuildMode::Host => BuildNetwork::Host,
        BuildMode::None => BuildNetwork::None,
        BuildMode::Sandboxed => BuildNetwork::Sandboxed(policy()),
    }
}

/// The configuration that was named, or the project's own, or an empty one.
pub(crate) async fn config_file(
    path: Option<&Path>,
    rules: &ConfigSource,
) -> anyhow::Result<SandboxFile> {
    let file = rules
        .sandbox_file(path.unwrap_or_else(|| Path::new(DEFAULT_CONFIG)))
        .await?;
    Ok(match (file, path) {
        (Some(file), _) => file,
        (None, None) => SandboxFile::parse("", DEFAULT_CONFIG).map_err(SandboxError::from)?,
        // Never what the working tree has in its place.
        (None, Some(path)) => {
            return Err(absent()).with_context(|| format!("cannot read {}", path.display()));
        }
    })
}

/// A container must not see the file that the secrets come from.
fn keep_out(secrets: &Path, mounts: &[Mount]) -> anyhow::Result<()> {
    let real = fs::canonicalize(secrets).unwrap_or_else(|_| secrets.to_owned());
    let shows = |mount: &&Mount| {
        fs::canonicalize(&mount.host_path).is_ok_and(|path| real.starts_with(path))
    };
    match mounts.iter().find(shows) {
        None => Ok(()),
        Some(mount) => {
            let message = format!(
                "the secrets in {} would be seen in the container",
                secrets.display()
            );
            let hint = format!("move the file out of {}", mount.host_path.display());
            Err(Hinted::new(message, hint).into())
        }
    }
}

fn limits(args: &Container, file: &ResourceLimits) -> ResourceLimits {
    ResourceLimits {
        timeout: args.timeout.map(Duration::from_secs).or(file.timeout),
        memory: args.memory.or(file.memory),
        cpus: args.cpus.or(file.cpus),
        pids: args.pids.or(file.pids),
    }
}

fn variables(args: &Container, printer: &Printer) -> Vec<(String, String)> {
    let given = args
        .env
        .iter()
        .map(|variable| (variable.name.clone(), variable.value.clone()));
    let passed = args
        .pass_env
        .iter()
        .filter_map(|name| match env::var(name) {
            Ok(value) => Some((name.clone(), value)),
            Err(_) => {
                printer.warning(format_args!(
                    "{name} is not set here, so the command does not get it"
                ));
                None
            }
        });
    given.chain(passed).collect()
}

/// Where the allowlist is, and whether it has to be there.
pub(crate) fn allowlist_path(named: Option<&Path>, written: Option<PathBuf>) -> (PathBuf, bool) {
    match (named, written) {
        (Some(path), _) => (path.to_owned(), true),
        (None, Some(path)) => (path, true),
        (None, None) => (PathBuf::from(DEFAULT_ALLOWLIST), false),
    }
}

pub(crate) async fn allowlist_text(
    rules: &ConfigSource,
    path: &Path,
    must_exist: bool,
) -> anyhow::Result<String> {
    let what = || format!("cannot read the allowlist {}", path.display());
    match rules.text(path).await.with_context(what)? {
        Some(text) => Ok(text),
        None if !must_exist => Ok(String::new()),
        None => Err(absent()).with_context(what),
    }
}

fn absent() -> io::Error {
    rustix::io::Errno::NOENT.into()
}

/// The allowlist of a text and of the flags together; without either, nothing is allowed.
pub(crate) fn allowlist(source: &Watched, text: &str) -> anyhow::Result<Allowlist> {
    let mut allowlist = Allowlist::from_yaml(text)
        .map_err(|error| Hinted::new(error.in_file(source.path.display()), error.hint()))?;
    for host in &source.hosts {
        allowlist
            .allow_host(host)
            .with_context(|| format!("cannot allow `{host}`"))?;
    }
    Ok(allowlist)
}

pub(crate) fn upstream(args: &Container) -> anyhow::Result<Upstream> {
    let extra_roots = match &args.upstream_ca {
        Some(path) => cordon::read_ca_bundle(path)?,
        None => Vec::new(),
    };
    Ok(Upstream {
        dns_servers: args.upstream_dns.clone(),
        extra_roots,
        http_proxy: http_proxy(args)?,
        ..Upstream::default()
    })
}

/// The proxy on the way out, with what stands apart from its address.
fn http_proxy(args: &Container) -> anyhow::Result<Option<HttpProxy>> {
    let Some(proxy) = &args.upstream_proxy else {
        return Ok(None);
    };
    let bypass = args.upstream_proxy_bypass.clone().unwrap_or_default();
    let proxy = proxy.clone().bypassing(bypass);
    Ok(Some(match env::var_os(PROXY_CREDENTIALS) {
        Some(credentials) => proxy.with_credentials(credentials.as_encoded_bytes())?,
        None => proxy,
    }))
}

/// `USER:PASSWORD` for the proxy on the way out.
const PROXY_CREDENTIALS: &str = "CORDON_UPSTREAM_PROXY_CREDENTIALS";

pub(crate) const DEFAULT_DOCKERFILE: &str = ".cordon/container/Dockerfile";

const DEFAULT_CONFIG: &str = ".cordon/sandbox.yaml";

const DEFAULT_ALLOWLIST: &str = ".cordon/network-allowlist.yaml";
