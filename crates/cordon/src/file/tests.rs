mod docs;
mod mistakes;
mod properties;
mod resolve;
mod sources;

use super::{FileError, HostEnv, Resolved, SandboxFile};

const GITHUB: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const KEY_ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

fn parse(text: &str) -> SandboxFile {
    SandboxFile::parse(text, "sandbox.yaml").unwrap()
}

async fn resolve(text: &str, host: &[(&str, &str)]) -> Resolved {
    parse(text).resolve(&env(host)).await.unwrap()
}

/// The error of a file that can be read and not resolved.
async fn refused(text: &str, host: &[(&str, &str)]) -> FileError {
    match parse(text).resolve(&env(host)).await {
        Ok(resolved) => panic!("{resolved:?}"),
        Err(error) => error,
    }
}

fn env(variables: &[(&str, &str)]) -> HostEnv {
    variables.iter().copied().collect()
}

fn pairs(env: &[(String, String)]) -> Vec<(&str, &str)> {
    env.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn notices(resolved: &Resolved) -> Vec<String> {
    resolved.notices.iter().map(ToString::to_string).collect()
}
