//! From a document to blocks: every key known, every value of its type.

use std::str::FromStr;

use cordon_yaml::{Key, Node, Value as Yaml, parse};

use super::block::{AppleKeys, Block, Image, VibeboxKeys};
use crate::{
    FileErrorKind, Mount,
    file::{
        Mistake,
        schema::{A_MAP, checked, limits, mistake, path, seconds, variable_name},
    },
    modes::UnknownWord,
};

/// Everything that is written in a file.
#[derive(Default)]
pub(super) struct Written {
    pub(super) defaults: Block,
    pub(super) agents: Vec<(Key, Block)>,
}

pub(super) fn agents(text: &str) -> Result<Written, Mistake> {
    let root = parse(text, WHOLE)?;
    let mut written = Written::default();
    if matches!((&root.value, &root.tag), (Yaml::Null, None)) {
        return Ok(written);
    }
    for (key, node) in root.map(WHOLE, A_MAP)? {
        if key.name != AGENTS {
            return Err(key.unknown(WHOLE, &[AGENTS]).into());
        }
        for (key, node) in node.map(AGENTS, A_MAP)? {
            let block = block(node, &format!("{AGENTS}.{}", key.name))?;
            match key.name.as_str() {
                DEFAULTS => written.defaults = block,
                _ => written.agents.push((key, block)),
            }
        }
    }
    Ok(written)
}

fn block(node: Node, place: &str) -> Result<Block, Mistake> {
    let mut block = Block::default();
    let (mut image, mut dockerfile) = (None, None);
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        let at = node.at;
        match key.name.as_str() {
            "mode" => block.mode = Some(word(node, &inner)?),
            "workspace" => block.workspace = Some(path(node, &inner)?),
            "workspace_access" => block.workspace_access = Some(word(node, &inner)?),
            "image" => image = Some(name(node, &inner, "the reference of an image")?),
            "dockerfile" => dockerfile = Some((path(node, &inner)?, at)),
            "profile" => block.profile = Some(word(node, &inner)?),
            "runtime" => block.runtime = Some(name(node, &inner, "the name of an OCI runtime")?),
            "mounts" => block.mounts = Some(node.list(&inner, mount)?),
            "env" => block.env = env(node, &inner)?,
            "allowlist" => block.allowlist = Some((path(node, &inner)?, at)),
            "limits" => block.limits = limits(node, &inner)?,
            "idle" => block.idle = Some(seconds(node, &inner)?),
            "commands" => block.commands = Some(node.list(&inner, program)?),
            "apple" => block.apple = apple(node, &inner)?,
            "vibebox" => block.vibebox = vibebox(node, &inner)?,
            "bootstrap_on_start" => block.bootstrap_on_start = Some(node.boolean(&inner)?),
            _ => return Err(key.unknown(place, KEYS).into()),
        }
    }
    block.image = match (image, dockerfile) {
        (Some(_), Some((_, at))) => {
            let (place, one, other) = (place.to_owned(), "image", "dockerfile");
            return Err(mistake(at, FileErrorKind::Both { place, one, other }));
        }
        (Some(name), None) => Some(Image::Named(name)),
        (None, dockerfile) => dockerfile.map(|(path, _)| Image::Built(path)),
    };
    Ok(block)
}

fn apple(node: Node, place: &str) -> Result<AppleKeys, Mistake> {
    let mut keys = AppleKeys::default();
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "program" => keys.program = Some(path(node, &inner)?),
            "network" => keys.network = Some(word(node, &inner)?),
            _ => return Err(key.unknown(place, APPLE_KEYS).into()),
        }
    }
    Ok(keys)
}

fn vibebox(node: Node, place: &str) -> Result<VibeboxKeys, Mistake> {
    let mut keys = VibeboxKeys::default();
    for (key, node) in node.map(place, A_MAP)? {
        let inner = format!("{place}.{}", key.name);
        match key.name.as_str() {
            "enabled" => keys.enabled = Some(node.boolean(&inner)?),
            "program" => keys.program = Some(path(node, &inner)?),
            "provider" => keys.provider = Some(word(node, &inner)?),
            "project_root" => keys.project_root = Some(path(node, &inner)?),
            "timeout" => keys.timeout = Some(seconds(node, &inner)?),
            _ => return Err(key.unknown(place, VIBEBOX_KEYS).into()),
        }
    }
    Ok(keys)
}

fn env(node: Node, place: &str) -> Result<Vec<(String, String)>, Mistake> {
    let entries = node.map(place, A_MAP)?.into_iter();
    entries
        .map(|(key, node)| {
            let name = variable_name(key.name, place, key.at)?;
            let inner = format!("{place}.{name}");
            let at = node.at;
            let value = node.scalar(&inner)?;
            if value.contains('\0') {
                return Err(mistake(at, FileErrorKind::Nul { place: inner }));
            }
            Ok((name, value))
        })
        .collect()
}

fn mount(node: Node, place: &str) -> Result<Mount, Mistake> {
    let at = node.at;
    node.string(place)?.parse().map_err(|reason| {
        let place = place.to_owned();
        mistake(at, FileErrorKind::Mount { place, reason })
    })
}

fn program(node: Node, place: &str) -> Result<String, Mistake> {
    name(node, place, "the name of a program")
}

fn name(node: Node, place: &str, expected: &'static str) -> Result<String, Mistake> {
    checked(node, place, expected, |text| {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        // What begins with a dash would be an option where it is handed on.
        !text.is_empty() && !text.starts_with('-') && !text.contains(odd)
    })
}

/// One of a closed set of words.
fn word<T: FromStr<Err = UnknownWord>>(node: Node, place: &str) -> Result<T, Mistake> {
    let at = node.at;
    // YAML of old took `off` for false, and people know that; ours is a word.
    node.string(place)?.parse().map_err(|reason| {
        let place = place.to_owned();
        mistake(at, FileErrorKind::Word { place, reason })
    })
}

const WHOLE: &str = "the agents file";

const AGENTS: &str = "agents";

/// The one name that no agent can have.
const DEFAULTS: &str = "defaults";

const KEYS: &[&str] = &[
    "mode",
    "workspace",
    "workspace_access",
    "image",
    "dockerfile",
    "profile",
    "runtime",
    "mounts",
    "env",
    "allowlist",
    "limits",
    "idle",
    "commands",
    "apple",
    "vibebox",
    "bootstrap_on_start",
];

const APPLE_KEYS: &[&str] = &["program", "network"];

const VIBEBOX_KEYS: &[&str] = &["enabled", "program", "provider", "project_root", "timeout"];
