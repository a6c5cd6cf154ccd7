//! The proxy alone, for a container beside the workload. Takes no arguments; see [`cordon_proxy::serve`].

use std::{
    error::Error,
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    match cordon_proxy::serve(io::stdin().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = format!("cordon-proxy: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                text += &format!(": {error}");
                cause = error.source();
            }
            // Nobody is left to tell if this fails.
            drop(writeln!(io::stderr(), "{text}"));
            ExitCode::FAILURE
        }
    }
}
