//! `cordon session`: containers that live as long as their supervisor, a process of this program.
//!
//! A supervisor owns the sandbox, the proxy and the container. What a command reads and writes never
//! passes through it: the command's pipes are handed to whoever asked for it.

mod client;
mod desk;
mod list;
mod start;
mod supervise;
mod wire;

use crate::{args::Session, exit::Exit, printer::Printer};

pub(crate) async fn run(args: Session, printer: &Printer) -> anyhow::Result<Exit> {
    match args {
        Session::Start(_) => start::start(printer).await,
        Session::Supervise(args) => supervise::supervise(*args, printer).await,
        Session::Exec(args) => client::exec(args, printer).await,
        Session::List(args) => list::list(&args, printer).await,
        Session::Stop(args) => list::stop(&args).await,
    }
}
