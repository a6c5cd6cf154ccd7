//! `cordon doctor`.

use std::path::PathBuf;

use cordon::{
    Pull, Sandbox, SandboxConfig, SandboxError, Upstream,
    doctor::{BootstrapReport, Fix},
    modes::{AgentSandbox, AgentsFile},
};
use serde_json::{Value, json};

use crate::{
    args::Doctor,
    commands::interrupts::Interrupts,
    exit::Exit,
    printer::{Hinted, Printer},
};

pub(crate) async fn run(args: Doctor, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    let agents = agents(&args)?;
    let sandbox = Sandbox::new(config(&args)?);
    let fix = if args.fix { Fix::Yes } else { Fix::No };
    let report = tokio::select! {
        report = sandbox.bootstrap(&agents, fix) => report,
        number = interrupts.next() => return Ok(Exit::Signal(number)),
    };
    if args.json {
        printer.json(&document(&report));
    } else {
        printer.report(&report);
    }
    Ok(Exit::Command(i32::from(!report.ok)))
}

/// The agents to look at; none where nobody wrote down any.
fn agents(args: &Doctor) -> anyhow::Result<Vec<AgentSandbox>> {
    let usual = || AgentsFile::default_path().filter(|path| path.exists());
    let path: Option<PathBuf> = args.agents.clone().or_else(usual);
    let Some(path) = path else {
        return match &args.agent {
            None => Ok(Vec::new()),
            Some(agent) => Err(Hinted::new(
                format!("there is no agent `{agent}`, because there is no agents file"),
                "name the file with --agents",
            )
            .into()),
        };
    };
    let file = AgentsFile::read(&path).map_err(SandboxError::from)?;
    match &args.agent {
        None => Ok(file.agents().to_vec()),
        Some(name) => match file.agent(name) {
            Some(agent) => Ok(vec![agent.clone()]),
            None => {
                let known: Vec<_> = file
                    .agents()
                    .iter()
                    .map(|agent| agent.agent.as_str())
                    .collect();
                let message = format!("there is no agent `{name}` in {}", path.display());
                Err(Hinted::new(message, format!("the agents are {}", known.join(", "))).into())
            }
        },
    }
}

fn config(args: &Doctor) -> anyhow::Result<SandboxConfig> {
    let extra_roots = match &args.upstream_ca {
        Some(path) => cordon::read_ca_bundle(path)?,
        None => Vec::new(),
    };
    Ok(SandboxConfig {
        engine: args.engine.clone(),
        topology: args.topology,
        upstream: Upstream {
            dns_servers: args.upstream_dns.clone(),
            extra_roots,
            ..Upstream::default()
        },
        pull: if args.no_pull {
            Pull::Never
        } else {
            Pull::Missing
        },
        ..SandboxConfig::default()
    })
}

/// The report for programs; docs/doctor.md describes it.
fn document(report: &BootstrapReport) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "level": finding.severity.word(),
            "code": finding.code.word(),
            "message": finding.message,
            "hints": finding.hints,
            "agent": finding.agent,
            "config": finding.config,
        })
    });
    let actions = report
        .actions
        .iter()
        .map(|action| json!({ "agent": action.agent, "message": action.message }));
    json!({
        "schema": 1,
        "ok": report.ok,
        "attempted": report.attempted,
        "actions": actions.collect::<Value>(),
        "findings": findings.collect::<Value>(),
    })
}
