//! `cordon run`.

use std::io::ErrorKind;

use cordon::{CommandResult, CommandSpec, CommandTask, Streams};

use crate::{
    args::Run,
    commands::{
        interrupts::Interrupts,
        surroundings::{self, Own, Ready, Settings},
        tend::{Running, Tend},
        workspace::Workspace,
    },
    exit::Exit,
    printer::{Printer, Refusals},
};

pub(crate) async fn run(args: Run, printer: &Printer) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::new()?;
    let container = &args.container;
    let mut workspace = match Workspace::prepare(container, &mut interrupts, printer).await? {
        Ok(workspace) => workspace,
        Err(exit) => return Ok(exit),
    };
    // Everything that can be wrong with what was written is found before anything is started.
    let mounts = workspace.mounts(&container.mount)?;
    let own = Own {
        build_log: args.network_log.clone(),
        ..Own::default()
    };
    let Settings {
        env,
        network,
        build,
        limits,
        tend,
    } = surroundings::settings(container, &workspace, &mounts, own, printer).await?;
    let refusals = Refusals::default();
    let live = container.network_log_live.then(|| printer.network());
    let mut spec = CommandSpec {
        mounts,
        env,
        workdir: args.workdir.clone(),
        user: container.user.clone(),
        profile: container.profile.unwrap_or_default(),
        network,
        limits,
        network_log: args.network_log.clone(),
        on_network: Some(refusals.noting(live)),
        ..CommandSpec::new("", args.command)
    };
    let Ready { sandbox, image } = match surroundings::prepare(
        container,
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
    let task = sandbox.create_command_task(spec)?;
    workspace.keep();
    let ended = execute(&task, &tend, &mut interrupts, printer).await;
    refusals.tell(printer);
    workspace.name(printer);
    ended
}

async fn execute(
    task: &CommandTask,
    tend: &Tend,
    interrupts: &mut Interrupts,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    let mut execution = std::pin::pin!(task.execute(Streams::inherited()));
    let result = tokio::select! {
        result = &mut execution => result?,
        () = tend.run(Running::Command(task), printer) => return Ok(Exit::Setup),
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
