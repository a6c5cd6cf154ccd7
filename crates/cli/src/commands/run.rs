//! `cordon run`.

use std::{
    env, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use cordon::{
    Allowlist, CommandResult, CommandSpec, CommandTask, Entrypoint, MaxImageAge, Mount, Network,
    NetworkSandbox, Pull, Recipe, ResourceLimits, Sandbox, SandboxConfig, SandboxError, StartLimit,
    Streams, Upstream,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    args::{MountArg, Run},
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(crate) async fn run(args: Run, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    let config = SandboxConfig {
        engine: args.engine.clone(),
        upstream: upstream(&args)?,
        pull: if args.no_pull {
            Pull::Never
        } else {
            Pull::Missing
        },
        on_notice: Some(printer.notices()),
        start_limit: args
            .start_limit
            .map_or_else(StartLimit::default, |seconds| {
                StartLimit(Duration::from_secs(seconds))
            }),
        max_image_age: args
            .max_image_age
            .map_or_else(MaxImageAge::default, |hours| {
                MaxImageAge(Duration::from_secs(hours * 3600))
            }),
        ..SandboxConfig::default()
    };
    let recipe = recipe(&args)?;
    let mut spec = spec(args, printer)?;
    let sandbox = Sandbox::new(config);
    // Nothing is running yet, so that a signal may end this right away.
    tokio::select! {
        started = sandbox.startup() => started?,
        number = interrupts.next() => return Ok(Exit::Signal(number)),
    }
    if let Some(recipe) = recipe {
        let entrypoint = Entrypoint::passthrough();
        let building =
            sandbox.ensure_image(&recipe, &entrypoint, |progress| printer.build(progress));
        spec.image = tokio::select! {
            built = building => built?,
            number = interrupts.next() => return Ok(Exit::Signal(number)),
        };
    }
    let task = sandbox.create_command_task(spec)?;
    execute(&task, &mut interrupts, printer).await
}

async fn execute(
    task: &CommandTask,
    interrupts: &mut Interrupts,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut execution = std::pin::pin!(task.execute(Streams::inherited()));
    let result = tokio::select! {
        result = &mut execution => result?,
        number = interrupts.next() => {
            let (_, result) = tokio::join!(task.stop(), execution);
            result?;
            return Ok(Exit::Signal(number));
        }
    };
    explain(task, &result, printer);
    Ok(if result.timed_out {
        Exit::TimedOut
    } else {
        Exit::Command(result.exit_code)
    })
}

/// Says what the exit code alone does not.
fn explain(task: &CommandTask, result: &CommandResult, printer: &Printer) {
    if let Some(error) = &result.not_started {
        let program = task.program().display();
        match error.kind() {
            ErrorKind::NotFound => printer.warning(format_args!("`{program}` is not in the image")),
            _ => printer.warning(format_args!("`{program}` cannot be started: {error}")),
        }
    }
    if result.timed_out {
        printer.warning(format_args!(
            "the command was ended after {} s",
            result.duration.as_secs()
        ));
    }
    if result.out_of_memory {
        printer.warning("the kernel ended something in the container for want of memory");
        printer.hint("give it more with --memory");
    }
}

fn spec(args: Run, printer: &Printer) -> anyhow::Result<CommandSpec> {
    // Where there is a Dockerfile, the image's name is known once it is built.
    let image = args.image.clone().unwrap_or_default();
    Ok(CommandSpec {
        mounts: mounts(&args.mount)?,
        env: variables(&args, printer),
        workdir: args.workdir.clone(),
        user: args.user.clone(),
        network: Network::Sandboxed(NetworkSandbox {
            allowlist: allowlist(&args)?,
        }),
        limits: ResourceLimits {
            timeout: args.timeout.map(Duration::from_secs),
            memory: args.memory,
            cpus: args.cpus,
            pids: args.pids,
        },
        network_log: args.network_log.clone(),
        on_network: args.network_log_live.then(|| printer.network()),
        ..CommandSpec::new(image, args.command)
    })
}

/// The recipe of the image to be built; `None` where an image is named.
fn recipe(args: &Run) -> anyhow::Result<Option<Recipe>> {
    let named = args.image.as_ref().is_some_and(|image| !image.is_empty());
    let dockerfile = match &args.dockerfile {
        Some(path) => path.as_path(),
        None if named => return Ok(None),
        None if Path::new(DEFAULT_DOCKERFILE).exists() => Path::new(DEFAULT_DOCKERFILE),
        None => {
            let hint =
                format!("name one with --image or in CORDON_IMAGE, or write {DEFAULT_DOCKERFILE}");
            return Err(Hinted::new("no image to run in", hint).into());
        }
    };
    let context = match (&args.context_dir, dockerfile.parent()) {
        (Some(directory), _) => directory.as_path(),
        (None, Some(parent)) if parent != Path::new("") => parent,
        (None, _) => Path::new("."),
    };
    let recipe = Recipe::read(dockerfile, context).map_err(SandboxError::from)?;
    Ok(Some(recipe))
}

/// The mounts that were asked for, and the current directory at `/workspace` unless something else is
/// to be there.
fn mounts(asked: &[MountArg]) -> anyhow::Result<Vec<Mount>> {
    let mut mounts = Vec::new();
    if !asked
        .iter()
        .any(|mount| mount.target.trim_end_matches('/') == WORKSPACE)
    {
        let here = env::current_dir().context("cannot tell the current directory")?;
        let home = env::var_os("HOME").map(PathBuf::from);
        if here == Path::new("/") || home.as_deref() == Some(&here) {
            let what = format!(
                "{} as a whole would be the command's workspace",
                here.display()
            );
            let hint = format!(
                "change into a project, or say `--mount {}:{WORKSPACE}` if you mean it",
                here.display()
            );
            return Err(Hinted::new(what, hint).into());
        }
        mounts.push(Mount::read_write(here, WORKSPACE));
    }
    mounts.extend(asked.iter().map(|mount| Mount {
        host_path: mount.source.clone(),
        container_path: mount.target.clone(),
        read_only: mount.read_only,
    }));
    Ok(mounts)
}

fn variables(args: &Run, printer: &Printer) -> Vec<(String, String)> {
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

/// The allowlist of the file and of the flags together; without either, nothing is allowed.
fn allowlist(args: &Run) -> anyhow::Result<Allowlist> {
    let (path, must_exist) = match &args.allowlist {
        Some(path) => (path.as_path(), true),
        None => (Path::new(DEFAULT_ALLOWLIST), false),
    };
    let mut allowlist = match fs::read_to_string(path) {
        Ok(text) => Allowlist::from_yaml(&text).map_err(|error| {
            Hinted::new(format!("{}", error.in_file(path.display())), error.hint())
        })?,
        Err(error) if error.kind() == ErrorKind::NotFound && !must_exist => Allowlist::default(),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read the allowlist {}", path.display()));
        }
    };
    for host in &args.allow {
        allowlist
            .allow_host(host)
            .with_context(|| format!("cannot allow `{host}`"))?;
    }
    Ok(allowlist)
}

fn upstream(args: &Run) -> anyhow::Result<Upstream> {
    let extra_roots = match &args.upstream_ca {
        Some(path) => cordon::read_ca_bundle(path)?,
        None => Vec::new(),
    };
    Ok(Upstream {
        dns_servers: args.upstream_dns.clone(),
        extra_roots,
        ..Upstream::default()
    })
}

/// The signals that end a run.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Interrupts {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            _ = self.hang_up.recv() => SignalKind::hangup().as_raw_value(),
        }
    }
}

const WORKSPACE: &str = "/workspace";

const DEFAULT_DOCKERFILE: &str = ".cordon/container/Dockerfile";

const DEFAULT_ALLOWLIST: &str = ".cordon/network-allowlist.yaml";
