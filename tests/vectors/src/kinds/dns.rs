//! DNS questions, the answers to them, and what the log says.

use std::net::Ipv4Addr;

use cordon_proxy::{Answer, DnsRecord, DnsResult, Event, answer};
use serde_json::{Value, json};

use super::log_lines::line;
use crate::{Case, Check, Unreadable, case::hex};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    if let Some(operation) = case.optional("op") {
        return type_name(case, &operation);
    }
    let query = hex(&case.text("query_hex")?).ok_or(Unreadable::Shape("query_hex"))?;
    let address: Ipv4Addr = case
        .text("proxy_ip")?
        .parse()
        .map_err(|_| Unreadable::Shape("proxy_ip"))?;
    let expected = reduced(&case.expected()?)?;
    let got = answer(&query, address).map(|answer| (answer.record.clone(), dump(answer)));
    Ok(match got {
        None if query.get(2).is_some_and(|flags| flags & 0x80 != 0) => {
            Check::new(expected, NO_ANSWER).because("a message that is itself a reply")
        }
        None => Check::new(expected, NO_ANSWER),
        Some((record, got)) => {
            let because = because(&record, &got, &expected, &query);
            Check::new(expected, got).because(because)
        }
    })
}

fn type_name(case: &mut Case, operation: &Value) -> Result<Check, Unreadable> {
    if operation != "qtype_name" {
        return Err(Unreadable::Shape("op"));
    }
    let number = case
        .value("input")?
        .as_u64()
        .and_then(|number| u16::try_from(number).ok());
    let record = DnsRecord {
        name: "name".to_owned(),
        record_type: number.ok_or(Unreadable::Shape("input"))?,
        result: DnsResult::NoData,
    };
    let line = line(Event::Dns(record));
    Ok(Check::new(case.expected()?, line.split(' ').nth(1)))
}

/// What a case expects, without what only says it again.
fn reduced(expected: &Value) -> Result<Value, Unreadable> {
    if expected["error"].is_string() {
        return Ok(NO_ANSWER.into());
    }
    let response = expected["response_hex"]
        .as_str()
        .ok_or(Unreadable::Shape("expect"))?;
    Ok(json!({ "response_hex": response, "log": expected["log"] }))
}

fn dump(answer: Answer) -> Value {
    let digits = answer.reply.iter().map(|byte| format!("{byte:02x}"));
    json!({ "response_hex": String::from_iter(digits), "log": line(Event::Dns(answer.record)) })
}

/// Why an answer differs, where all that differs is what that explains.
fn because(record: &DnsRecord, got: &Value, expected: &Value, query: &[u8]) -> &'static str {
    let hex = |value: &Value| {
        value["response_hex"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (got, wanted) = (hex(got), hex(expected));
    match record.result {
        DnsResult::NoData if got == wanted.replacen("8184", "8180", 1) => "no data of that type",
        DnsResult::Malformed => "a message that is malformed",
        DnsResult::NotImplemented => "a message that asks for no lookup",
        DnsResult::Address(_) if got == wanted && record.name.contains('\\') => {
            "a name that is escaped in the log"
        }
        DnsResult::Address(_)
            if record.name.is_empty() && got == wanted.replacen("c00c", "00", 1) =>
        {
            "the root without a pointer to it"
        }
        DnsResult::Address(_) if query.get(10..12) != Some(&[0, 0]) => "a question with EDNS",
        DnsResult::Address(_) | DnsResult::NoData => "",
    }
}

const NO_ANSWER: &str = "no answer";
