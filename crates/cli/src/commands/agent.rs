//! `cordon agent`.

use std::{
    env,
    hash::{DefaultHasher, Hash, Hasher},
    io::{IsTerminal, Read},
};

use anyhow::Context;
use cordon::{
    Agent, Budget, BuildNetwork, ContextId, MaskedSecret, Outcome, Prompt, Secret, Task, TaskSpec,
};

use crate::{
    args::AgentRun,
    commands::{
        interrupts::Interrupts,
        state,
        surroundings::{self, Own, Ready, Settings},
        tend::{Running, Tend},
        workspace::Workspace,
    },
    exit::Exit,
    printer::{Hinted, Printer, Transcript},
};

pub(crate) async fn run(args: AgentRun, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    let text = prompt(&args)?;
    let mut workspace = match Workspace::prepare(&args.container, &mut interrupts, printer).await? {
        Ok(workspace) => workspace,
        Err(exit) => return Ok(exit),
    };
    let (mut spec, build, tend) = spec(&args, &workspace, printer).await?;
    let Ready { sandbox, image } = match surroundings::prepare(
        &args.container,
        workspace.rules(),
        build,
        &mut interrupts,
        printer,
    )
    .await?
    {
        Ok(ready) => ready,
        Err(exit) => return Ok(exit),
    };
    spec.image = image;
    let task = sandbox.create_task(spec)?;
    let mut prompt = Prompt::new(text).resume(resume(&args, &task)?);
    if let Some(model) = &args.model {
        prompt = prompt.model(model);
    }
    if let Some(effort) = args.effort {
        prompt = prompt.effort(effort);
    }
    if let Some(url) = &args.base_url {
        prompt = prompt.base_url(url);
    }
    let mut surroundings = Surroundings {
        tend,
        interrupts,
        printer,
    };
    workspace.keep();
    let ended = execute(&args, &task, prompt, &mut surroundings).await;
    workspace.name(printer);
    ended
}

/// What an execution is surrounded by.
struct Surroundings<'a> {
    tend: Tend,
    interrupts: Interrupts,
    printer: &'a Printer,
}

async fn execute(
    args: &AgentRun,
    task: &Task,
    prompt: Prompt,
    surroundings: &mut Surroundings<'_>,
) -> anyhow::Result<Exit> {
    let Surroundings {
        tend,
        interrupts,
        printer,
    } = surroundings;
    let transcript = if args.json {
        Transcript::json(printer)
    } else {
        Transcript::text(printer)
    };
    let mut execution = std::pin::pin!(task.execute(prompt, |event| transcript.event(event)));
    let (result, signal) = tokio::select! {
        result = &mut execution => (result?, None),
        () = tend.run(Running::Agent(task), printer) => return Ok(Exit::Setup),
        number = interrupts.next() => {
            let (_, result) = tokio::join!(task.stop(), &mut execution);
            (result?, Some(number))
        }
    };
    transcript.result(task.execution_context_id(), &result);
    Ok(match signal {
        Some(number) => Exit::Signal(number),
        None => exit(result.outcome),
    })
}

/// What `cordon agent --help` says of the codes.
fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Success => Exit::Command(0),
        Outcome::ContainerFailed | Outcome::Stopped => Exit::Command(1),
        Outcome::Timeout => Exit::TimedOut,
        Outcome::PromptTooLong => Exit::Command(10),
        Outcome::SessionCorrupted => Exit::Command(11),
        Outcome::RateLimited { .. } => Exit::Command(12),
        Outcome::Overloaded => Exit::Command(13),
        Outcome::AuthFailed => Exit::Command(14),
        Outcome::OutOfMemory => Exit::Command(15),
        Outcome::BudgetExceeded => Exit::Command(16),
    }
}

async fn spec(
    args: &AgentRun,
    workspace: &Workspace,
    printer: &Printer,
) -> anyhow::Result<(TaskSpec, BuildNetwork, Tend)> {
    let container = &args.container;
    let context = match &args.context {
        Some(context) => context.clone(),
        None => context_of_directory()?,
    };
    let directory = state::contexts()?.join(context.as_str());
    let mounts = workspace.mounts(&container.mount)?;
    let own = Own {
        secrets: keys(args.agent)?,
        hosts: args.agent.api_hosts(),
        build_log: Some(directory.join(NETWORK_LOG)),
    };
    let Settings {
        env,
        network,
        build,
        mut limits,
        tend,
    } = surroundings::settings(container, workspace, &mounts, own, printer).await?;
    let defaults = TaskSpec::new(args.agent, context, "", &directory);
    limits.timeout = limits.timeout.or(defaults.limits.timeout);
    let known = |name: &str| env.iter().any(|(other, _)| other == name);
    if !args
        .agent
        .credentials()
        .iter()
        .any(|credential| known(credential.variable))
    {
        let names: Vec<_> = args
            .agent
            .credentials()
            .iter()
            .map(|credential| credential.variable)
            .collect();
        let message = format!("no key for {} in the environment", args.agent);
        return Err(Hinted::new(message, format!("set {}", names.join(" or "))).into());
    }
    let spec = TaskSpec {
        mounts,
        env,
        network_log_dir: Some(directory),
        network,
        limits,
        budget: Budget {
            max_cost_usd: args.max_cost_usd,
            max_turns: args.max_turns,
        },
        user: container.user.clone(),
        profile: container.profile.unwrap_or(defaults.profile),
        agent_binary: args.agent_binary.clone(),
        sync_python: args.sync_python,
        on_network: Some(if container.network_log_live {
            printer.network()
        } else {
            printer.refusals()
        }),
        ..defaults
    };
    Ok((spec, build, tend))
}

/// The agent's own keys, from the caller's environment; the container sees look-alikes.
fn keys(agent: Agent) -> anyhow::Result<Vec<MaskedSecret>> {
    let mut keys = Vec::new();
    for credential in agent.credentials() {
        let Ok(value) = env::var(credential.variable) else {
            continue;
        };
        let scopes = credential
            .hosts
            .iter()
            .map(|host| cordon::HostPattern::parse(host));
        keys.push(MaskedSecret::new(
            credential.variable,
            Secret::new(value),
            scopes.collect::<Result<_, _>>()?,
            vec![cordon::NamePattern::new(credential.header)],
        ));
    }
    Ok(keys)
}

fn prompt(args: &AgentRun) -> anyhow::Result<String> {
    if let Some(text) = &args.prompt {
        return Ok(text.clone());
    }
    if std::io::stdin().is_terminal() {
        return Err(
            Hinted::new("no prompt", "give one with --prompt, or on standard input").into(),
        );
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("cannot read the prompt from standard input")?;
    Ok(text)
}

fn resume(args: &AgentRun, task: &Task) -> anyhow::Result<Option<String>> {
    if !args.resume {
        return Ok(None);
    }
    let found = task
        .session_store()
        .session_id_for_resume()
        .map_err(cordon::SandboxError::from)?;
    if found.is_none() {
        let message = format!(
            "context {} has no session to go on with",
            task.execution_context_id()
        );
        return Err(Hinted::new(message, "leave --continue out to begin one").into());
    }
    Ok(found)
}

/// A context that belongs to the current directory.
fn context_of_directory() -> anyhow::Result<ContextId> {
    let here = env::current_dir().context("cannot tell the current directory")?;
    let mut hash = DefaultHasher::new();
    here.hash(&mut hash);
    let name: String = here
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(40)
        .collect();
    Ok(format!("{name}-{:08x}", hash.finish() as u32)
        .trim_start_matches('-')
        .parse()?)
}

/// The network log of a context, which a build for it writes to as well.
const NETWORK_LOG: &str = "network-sandbox.log";
