//! Bodies in signed chunks, and the strings that their signatures are of.

use cordon_sigv4::{Algorithm, ChunkSigner, ChunkStream, SigningKey, ecdsa_scalar};
use serde_json::{Value, json};

use super::sigv4::{
    Input,
    steps::{context, hex, hmac},
};
use crate::{Case, Check, Unreadable, case};

pub(crate) fn check(case: &mut Case) -> Result<Check, Unreadable> {
    let Some(operation) = case.optional("op") else {
        return body(case);
    };
    let input = Input(case.value("input")?);
    let previous = input.text("previous_signature")?;
    let string = match operation.as_str() {
        Some("sigv4_chunk_string_to_sign") => context(&input, Algorithm::HmacSha256)?
            .chunk_string_to_sign(previous, &input.bytes("chunk_data")?),
        Some("sigv4a_chunk_string_to_sign") => context(&input, Algorithm::EcdsaP256Sha256)?
            .chunk_string_to_sign(previous, &input.bytes("chunk_data")?),
        Some("sigv4_trailer_string_to_sign") => context(&input, Algorithm::HmacSha256)?
            .trailer_string_to_sign(previous, &input.bytes("trailing_headers")?),
        _ => return Err(Unreadable::Shape("op")),
    };
    Ok(Check::new(case.expected()?, string))
}

fn body(case: &mut Case) -> Result<Check, Unreadable> {
    let input =
        Input(json!({ "timestamp": case.value("timestamp")?, "scope": case.value("scope")? }));
    let sigv4a = case
        .value("sigv4a")?
        .as_bool()
        .ok_or(Unreadable::Shape("sigv4a"))?;
    let has_trailer = case
        .value("has_trailer")?
        .as_bool()
        .ok_or(Unreadable::Shape("has_trailer"))?;
    let key = match (case.value("signing_key_hex")?, sigv4a) {
        (Value::String(digits), false) => {
            hmac(&case::hex(&digits).ok_or(Unreadable::Shape("signing_key_hex"))?)?
        }
        // Any key does: the signatures of these cases are masked.
        (Value::Null, true) => SigningKey::from_scalar(&*ecdsa_scalar("AKID", "secret")?)?,
        _ => return Err(Unreadable::Shape("signing_key_hex")),
    };
    let algorithm = if sigv4a {
        Algorithm::EcdsaP256Sha256
    } else {
        Algorithm::HmacSha256
    };
    let stream = ChunkStream {
        decoded_length: None,
        trailers: has_trailer.then(Vec::new),
    };
    let signer = ChunkSigner::new(
        key,
        context(&input, algorithm)?,
        case.text("seed_signature")?,
        stream,
    )?;
    let inputs = case.value("inputs_hex")?;
    let expected = case.expected()?;
    let wanted = expected
        .get("output_masked")
        .or_else(|| expected.get("output_hex"));
    let wanted = wanted.cloned().ok_or(Unreadable::Shape("expect"))?;
    Ok(match run(signer, &inputs)? {
        Err(error) => Check::new(wanted, "refused").because(error),
        Ok(output) if sigv4a => compare(wanted, masked(&output), "\r\n"),
        Ok(output) if has_trailer => Check::new(wanted, hex(&output)).because("signed trailers"),
        Ok(output) => compare(wanted, hex(&output), "0d0a"),
    })
}

fn run(
    mut signer: ChunkSigner,
    inputs: &Value,
) -> Result<Result<Vec<u8>, cordon_sigv4::Error>, Unreadable> {
    let mut output = Vec::new();
    for input in inputs.as_array().into_iter().flatten() {
        let input = input
            .as_str()
            .and_then(case::hex)
            .ok_or(Unreadable::Shape("inputs_hex"))?;
        if let Err(error) = signer.push(&input, &mut output) {
            return Ok(Err(error));
        }
    }
    Ok(signer.finish(&mut output).map(|()| output))
}

/// Tells whether all that differs is the line end behind the last line, which cases leave away.
fn compare(wanted: Value, got: String, line_end: &str) -> Check {
    let ended = wanted
        .as_str()
        .is_some_and(|wanted| got == format!("{wanted}{line_end}"));
    let check = Check::new(wanted, got);
    if ended {
        check.because("the empty line at the end of a body")
    } else {
        check
    }
}

/// The output with every signature left out, and its padding with it.
fn masked(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = text.split_inclusive("\r\n").map(|line| {
        let mask = |name: &str| Some(format!("{}{name}<ecdsa>\r\n", line.split_once(name)?.0));
        mask("chunk-signature=")
            .or_else(|| mask("x-amz-trailer-signature:"))
            .unwrap_or_else(|| line.to_owned())
    });
    lines.collect()
}
