//! What botocore sends with surrogates, signed again, is what it sends with the real credentials.

use cordon_sigv4::{
    Head,
    minting::{self, Verdict},
};
use serde_json::{Value, json};

use crate::python::{self, Captured};

#[test]
fn requests_of_botocore_become_those_of_the_real_credentials() {
    compare_all(&[("BOTO_DISABLE_CRT", "true")]);
}

#[test]
fn requests_of_botocore_with_awscrt_become_those_of_the_real_credentials() {
    compare_all(&[("BOTO_DISABLE_CRT", "false")]);
}

fn compare_all(variables: &[(&str, &str)]) {
    for (surrogate, real) in python::pairs() {
        let input = json!([python::to_json(&surrogate), python::to_json(&real)]);
        let runs = python::run("capture.py", variables, &input);
        let names = runs[0].as_object().unwrap().keys();
        assert!(names.len() > 20);
        for name in names {
            let sent = Captured::new(&runs[0][name]);
            let expected = Captured::new(&runs[1][name]);
            assert_ne!(
                (sent.sorted(), &sent.target),
                (expected.sorted(), &expected.target)
            );
            let resigned = sent.resign(&real);
            let sent = sent.edited(&resigned);
            assert_eq!(sent.target, expected.target, "{name}");
            assert_eq!(sent.sorted(), expected.sorted(), "{name}");
        }
    }
}

#[test]
fn every_operation_whose_answer_carries_a_secret_key_is_recognised_as_minting() {
    let operations = python::run("minting.py", &[], &Value::Null);
    let operations = operations.as_array().unwrap();
    assert!(operations.len() > 30);
    for operation in operations {
        let text = |name: &str| operation[name].as_str().unwrap();
        let target_header = text("target_header");
        let headers = [("x-amz-target", target_header.as_bytes())];
        let head = Head {
            method: text("method"),
            target: text("target"),
            authority: "endpoint.example",
            headers: if target_header.is_empty() {
                &[]
            } else {
                &headers
            },
        };
        let verdict = match minting::judge(&head, Some(text("service"))) {
            Verdict::NeedsBody => minting::judge_body(text("body").as_bytes())
                .map_or(Verdict::Harmless, Verdict::Mints),
            verdict => verdict,
        };
        assert!(matches!(verdict, Verdict::Mints(_)), "{operation}");
    }
}

#[test]
fn no_operation_of_an_everyday_service_is_taken_for_minting() {
    let everyday = json!([
        "dynamodb",
        "lambda",
        "s3",
        "sqs",
        "sns",
        "logs",
        "ec2",
        "bedrock-runtime"
    ]);
    let operations = python::run("minting.py", &[], &everyday);
    let operations = operations.as_array().unwrap();
    assert!(operations.len() > 500);
    for operation in operations {
        let text = |name: &str| operation[name].as_str().unwrap();
        if text("name") == "CreateSession" {
            continue;
        }
        let target_header = text("target_header");
        let headers = [("x-amz-target", target_header.as_bytes())];
        let head = Head {
            method: text("method"),
            target: text("target"),
            authority: "endpoint.example",
            headers: if target_header.is_empty() {
                &[]
            } else {
                &headers
            },
        };
        let verdict = minting::judge(&head, Some(text("service")));
        assert_eq!(verdict, Verdict::Harmless, "{operation}");
        assert_eq!(
            minting::judge_body(text("body").as_bytes()),
            None,
            "{operation}"
        );
    }
}
