//! From a document to a configuration: every key known, every value of its type.

use std::{path::PathBuf, str::FromStr, time::Duration};

use cordon_policy::{HostPattern, NamePattern};
use cordon_secrets::BodyRule;
use cordon_yaml::{Error, ErrorKind, Key, Node, Position, Value as Yaml, parse};

use super::{
    Masked, NetworkKeys, Passed, SandboxFile, Signing, Variable,
    error::{FileErrorKind, Mistake},
    pool::{Environment, Sources},
    value::{Value, is_variable},
};
use crate::{BuildMode, InvalidLimit, ResourceLimits};

pub(super) fn sandbox_file(text: &str, name: &str) -> Result<SandboxFile, Mistake> {
    let mut file = SandboxFile {
        name: name.to_owned(),
        env: Vec::new(),
        pass_env: Vec::new(),
        masked: Vec::new(),
        signing: Vec::new(),
        network: NetworkKeys {
            enabled: true,
            allowlist: None,
        },
        limits: ResourceLimits::default(),
        build_network: None,
        sources: Sources::default(),
    };
    let root = parse(text, WHOLE)?;
    if matches!((&root.value, &root.tag), (Yaml::Null, None)) {
        return Ok(file);
    }
    for (key, node) in root.map(WHOLE, A_MAP)? {
        match key.name.as_str() {
            "env" => file.env = entries(node, "env", variable)?,
            "pass_env" => file.pass_env = node.list("pass_env", passed)?,
            "masked_secrets" => file.masked = entries(node, "masked_secrets", masked)?,
            "signing_credentials" => file.signing = entries(node, "signing_credentials", signing)?,
            "network_sandbox" => file.network = network(node, "network_sandbox")?,
            "resource_limits" => file.limits = limits(node, "resource_limits")?,
            "build_network" => file.build_network = Some(build_mode(node, "build_network")?),
            "secrets" => file.sources = sources(node, "secrets")?,
            _ => return Err(key.unknown(WHOLE, KEYS).into()),
        }
    }
    Ok(file)
}

/// The entries of a map whose keys are names of the author's choice.
fn entries<T>(
    node: Node,
    place: &str,
    entry: fn(Key, Node, &str) -> Result<T, Mistake>,
) -> Result<Vec<T>, Mistake> {
    let entries = node.map(place, A_MAP)?.into_iter();
    entries
        .map(|(key, node)| {
            let place = format!("{place}.{}", key.name);
            entry(key, node, &place)
        })
        .collect()
}

fn variable(key: Key, node: Node, place: &str) -> Result<Variable, Mistake> {
    Ok(Variable {
        name: variable_name(key.name, "env", key.at)?,
        value: Value::read(node, place)?,
    })
}

fn passed(node: Node, place: &str) -> Result<Passed, Mistake> {
    let at = node.at;
    let name = variable_name(node.string(place)?, place, at)?;
    let place = place.to_owned();
    Ok(Passed { name, place, at })
}

fn masked(key: Key, node: Node, place: &str) -> Result<Masked, Mistake> {
    let env_var = variable_name(key.name, "masked_secrets", key.at)?;
    let (mut value, mut scopes, mut headers, mut query) = (None, None, Vec::new(), Vec::new());
    let (mut allow_foreign_credentials, mut path, mut body) = (false, false, None);
    let mut expires_after = None;
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "value" => value = Some(Value::read(node, &inner)?),
            "scopes" => scopes = Some(filled(node, &inner, "at least one host", scope)?),
            "headers" => headers = node.list(&inner, header)?,
            "query" => query = node.list(&inner, parameter)?,
            "path" => path = node.boolean(&inner)?,
            "body" => body = body_rule(node, &inner)?,
            "allow_foreign_credentials" => allow_foreign_credentials = node.boolean(&inner)?,
            "expires_after" => expires_after = Some(seconds(node, &inner)?),
            _ => return Err(key.unknown(place, MASKED_KEYS).into()),
        }
    }
    if headers.is_empty() && query.is_empty() && !path && body.is_none() {
        let place = place.to_owned();
        return Err(mistake(key.at, FileErrorKind::Nowhere { place }));
    }
    Ok(Masked {
        env_var,
        at: key.at,
        value: required(value, place, "value", key.at)?,
        scopes: required(scopes, place, "scopes", key.at)?,
        headers,
        allow_foreign_credentials,
        query,
        path,
        body,
        expires_after,
    })
}

fn body_rule(node: Node, place: &str) -> Result<Option<BodyRule>, Mistake> {
    if matches!(node.value, Yaml::Bool(_)) {
        let content_types = USUAL_BODIES.iter().map(|&name| name.to_owned());
        let rule = BodyRule {
            content_types: content_types.collect(),
        };
        return Ok(node.boolean(place)?.then_some(rule));
    }
    let at = node.at;
    let mut content_types = None;
    for (key, node) in node.map(place, "true, false or a map with `content_types`")? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "content_types" => {
                content_types = Some(filled(node, &inner, "at least one type", content_type)?);
            }
            _ => return Err(key.unknown(place, &["content_types"]).into()),
        }
    }
    let content_types = required(content_types, place, "content_types", at)?;
    Ok(Some(BodyRule { content_types }))
}

fn signing(key: Key, node: Node, place: &str) -> Result<Signing, Mistake> {
    let (mut kind, mut access_key_id, mut secret_access_key) = (None, None, None);
    let (mut session_token, mut scopes) = (None, None);
    let (mut allow_credential_minting, mut allow_foreign_credentials) = (false, false);
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "type" => kind = Some(signing_type(node, &inner)?),
            "access_key_id" => access_key_id = Some(credential(node, &inner)?),
            "secret_access_key" => secret_access_key = Some(credential(node, &inner)?),
            "session_token" => session_token = Some(credential(node, &inner)?),
            "scopes" => scopes = Some(filled(node, &inner, "at least one host", scope)?),
            "allow_credential_minting" => allow_credential_minting = node.boolean(&inner)?,
            "allow_foreign_credentials" => allow_foreign_credentials = node.boolean(&inner)?,
            _ => return Err(key.unknown(place, SIGNING_KEYS).into()),
        }
    }
    required(kind, place, "type", key.at)?;
    Ok(Signing {
        at: key.at,
        access_key_id: required(access_key_id, place, "access_key_id", key.at)?,
        secret_access_key: required(secret_access_key, place, "secret_access_key", key.at)?,
        session_token,
        scopes: required(scopes, place, "scopes", key.at)?,
        allow_credential_minting,
        allow_foreign_credentials,
    })
}

fn signing_type(node: Node, place: &str) -> Result<(), Error> {
    let at = node.at;
    match node.string(place)? {
        name if name == AWS_SIGV4 => Ok(()),
        name => Err(ErrorKind::wrong_value(place, name, AWS_SIGV4).at(at)),
    }
}

/// A value whose tag, if it has one, also names the variable of the container.
fn credential(node: Node, place: &str) -> Result<Value, Mistake> {
    let value = Value::read(node, place)?;
    if let Some(name) = value.name() {
        variable_name(name.to_owned(), place, value.at)?;
    }
    Ok(value)
}

fn network(node: Node, place: &str) -> Result<NetworkKeys, Mistake> {
    let mut network = NetworkKeys {
        enabled: true,
        allowlist: None,
    };
    if matches!(node.value, Yaml::Bool(_)) {
        network.enabled = node.boolean(place)?;
        return Ok(network);
    }
    for (key, node) in node.map(place, "true, false or a map")? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "enabled" => network.enabled = node.boolean(&inner)?,
            "allowlist" => network.allowlist = Some(path(node, &inner)?),
            _ => return Err(key.unknown(place, NETWORK_KEYS).into()),
        }
    }
    Ok(network)
}

fn build_mode(node: Node, place: &str) -> Result<BuildMode, Error> {
    let at = node.at;
    let name = node.string(place)?;
    let mode = name.parse();
    mode.map_err(|_| ErrorKind::wrong_value(place, name, "host, none or sandboxed").at(at))
}

pub(crate) fn limits(node: Node, place: &str) -> Result<ResourceLimits, Mistake> {
    let mut limits = ResourceLimits::default();
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "timeout" => limits.timeout = Some(seconds(node, &inner)?),
            "memory" => limits.memory = Some(limit(node, &inner)?),
            "cpus" => limits.cpus = Some(limit(node, &inner)?),
            "pids" => limits.pids = Some(limit(node, &inner)?),
            _ => return Err(key.unknown(place, LIMIT_KEYS).into()),
        }
    }
    Ok(limits)
}

fn limit<T: FromStr<Err = InvalidLimit>>(node: Node, place: &str) -> Result<T, Mistake> {
    let at = node.at;
    node.scalar(place)?.parse().map_err(|reason| {
        let place = place.to_owned();
        mistake(at, FileErrorKind::Limit { place, reason })
    })
}

pub(crate) fn seconds(node: Node, place: &str) -> Result<Duration, Error> {
    let at = node.at;
    let number = node.integer(place)?;
    match u64::try_from(number) {
        Ok(seconds @ 1..=YEAR) => Ok(Duration::from_secs(seconds)),
        _ => {
            let expected = "a number of seconds from 1 to 31536000";
            Err(ErrorKind::wrong_value(place, number.to_string(), expected).at(at))
        }
    }
}

fn sources(node: Node, place: &str) -> Result<Sources, Mistake> {
    let mut sources = Sources {
        environment: Environment::None,
        ..Sources::default()
    };
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        let at = node.at;
        match key.name.as_str() {
            "environment" => sources.environment = environment(node, &inner)?,
            "file" => sources.file = Some((path(node, &inner)?, at)),
            "command" => sources.command = Some((command(node, &inner)?, at)),
            "timeout" => sources.timeout = seconds(node, &inner)?,
            _ => return Err(key.unknown(place, SOURCE_KEYS).into()),
        }
    }
    Ok(sources)
}

fn environment(node: Node, place: &str) -> Result<Environment, Mistake> {
    match node.value {
        Yaml::Bool(true) => Ok(Environment::All),
        Yaml::Bool(false) => Ok(Environment::None),
        Yaml::List(_) => Ok(Environment::Named(node.list(place, |node, place| {
            let at = node.at;
            variable_name(node.string(place)?, place, at)
        })?)),
        _ => Err(node
            .wrong_type(place, "true, false or a list of names")
            .into()),
    }
}

fn command(node: Node, place: &str) -> Result<Vec<String>, Mistake> {
    let at = node.at;
    let words = filled(node, place, "a program and its arguments", argument)?;
    if !words.iter().skip(1).any(|word| word.contains(NAME_PLACE)) {
        return Err(mistake(at, FileErrorKind::NoNamePlace));
    }
    Ok(words)
}

fn argument(node: Node, place: &str) -> Result<String, Mistake> {
    checked(node, place, "text without NUL characters", |text| {
        !text.contains('\0')
    })
}

pub(crate) fn path(node: Node, place: &str) -> Result<PathBuf, Mistake> {
    let path = checked(node, place, "a path", |text| {
        !text.is_empty() && !text.contains('\0')
    })?;
    Ok(path.into())
}

fn scope(node: Node, place: &str) -> Result<HostPattern, Mistake> {
    let at = node.at;
    let value = node.string(place)?;
    HostPattern::parse(&value).map_err(|reason| {
        let place = place.to_owned();
        mistake(
            at,
            FileErrorKind::Scope {
                place,
                value,
                reason,
            },
        )
    })
}

fn header(node: Node, place: &str) -> Result<NamePattern, Mistake> {
    let expected = "the name of a header, such as Authorization";
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~?[]".contains(&byte);
    let name = checked(node, place, expected, |text| {
        !text.is_empty() && text.bytes().all(belongs)
    })?;
    Ok(NamePattern::new(&name))
}

fn parameter(node: Node, place: &str) -> Result<String, Mistake> {
    checked(node, place, "the name of a parameter", |text| {
        !text.is_empty()
    })
}

fn content_type(node: Node, place: &str) -> Result<String, Mistake> {
    let expected = "a type without parameters, such as application/json";
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    let is_name = |text: &str| !text.is_empty() && text.bytes().all(belongs);
    checked(node, place, expected, |text| {
        text.split_once('/')
            .is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
    })
}

pub(crate) fn checked(
    node: Node,
    place: &str,
    expected: &'static str,
    is_right: impl Fn(&str) -> bool,
) -> Result<String, Mistake> {
    let at = node.at;
    let text = node.string(place)?;
    if !is_right(&text) {
        return Err(ErrorKind::wrong_value(place, text, expected).at(at).into());
    }
    Ok(text)
}

/// A list with something in it.
fn filled<T>(
    node: Node,
    place: &str,
    expected: &'static str,
    item: fn(Node, &str) -> Result<T, Mistake>,
) -> Result<Vec<T>, Mistake> {
    let at = node.at;
    let items = node.list(place, item)?;
    if items.is_empty() {
        let kind = ErrorKind::wrong_value(place, "[]".to_owned(), expected);
        return Err(kind.at(at).into());
    }
    Ok(items)
}

pub(crate) fn variable_name(name: String, place: &str, at: Position) -> Result<String, Mistake> {
    if is_variable(&name) {
        return Ok(name);
    }
    let place = place.to_owned();
    Err(mistake(at, FileErrorKind::VariableName { place, name }))
}

fn required<T>(
    found: Option<T>,
    place: &str,
    key: &'static str,
    at: Position,
) -> Result<T, Mistake> {
    found.ok_or_else(|| ErrorKind::missing(place, key).at(at).into())
}

pub(crate) fn mistake(at: Position, kind: FileErrorKind) -> Mistake {
    Mistake { at, kind }
}

const WHOLE: &str = "the configuration";

pub(crate) const A_MAP: &str = "a map";

pub(super) const KEYS: &[&str] = &[
    "env",
    "pass_env",
    "masked_secrets",
    "signing_credentials",
    "network_sandbox",
    "resource_limits",
    "build_network",
    "secrets",
];

pub(super) const MASKED_KEYS: &[&str] = &[
    "value",
    "scopes",
    "headers",
    "allow_foreign_credentials",
    "query",
    "path",
    "body",
    "expires_after",
];

pub(super) const SIGNING_KEYS: &[&str] = &[
    "type",
    "access_key_id",
    "secret_access_key",
    "session_token",
    "scopes",
    "allow_credential_minting",
    "allow_foreign_credentials",
];

pub(super) const NETWORK_KEYS: &[&str] = &["enabled", "allowlist"];

pub(super) const LIMIT_KEYS: &[&str] = &["timeout", "memory", "cpus", "pids"];

pub(super) const SOURCE_KEYS: &[&str] = &["environment", "file", "command", "timeout"];

const AWS_SIGV4: &str = "aws-sigv4";

/// The bodies that `body: true` means: what nearly all interfaces take.
const USUAL_BODIES: &[&str] = &["application/json", "application/x-www-form-urlencoded"];

/// Stands for the secret's name in the arguments of a command.
pub(super) const NAME_PLACE: &str = "{name}";

const YEAR: u64 = 365 * 24 * 60 * 60;
