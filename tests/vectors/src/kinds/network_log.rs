//! A network log that is read, whole or from an offset.

use std::fs;

use cordon_proxy::NetworkLog;
use serde_json::{Value, json};

use crate::{Case, Check, Unreadable};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let operation = case.text("op")?;
    let text = case.value("file_text")?;
    let arguments = case.value("args")?;
    let expected = case.expected()?;
    let directory = tempfile::tempdir()?;
    let log = NetworkLog::new(directory.path().join("network-sandbox.log"));
    match text {
        Value::String(text) => fs::write(log.path(), text)?,
        Value::Null => {}
        _ => return Err(Unreadable::Shape("file_text")),
    }
    let got = match (operation.as_str(), arguments.as_array().map(Vec::as_slice)) {
        ("read_raw", Some([])) => log.read_raw()?.into(),
        ("tail", Some([offset])) => {
            json!(log.tail(offset.as_u64().ok_or(Unreadable::Shape("args"))?)?)
        }
        _ => return Err(Unreadable::Shape("op")),
    };
    Ok(Check::new(expected, got))
}
