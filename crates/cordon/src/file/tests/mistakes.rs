//! Every mistake in a file, with its whole message and hint.

use super::SandboxFile;

#[test]
fn mistakes_are_named_with_their_place_and_a_hint() {
    for (text, message, hint) in MISTAKES {
        let error = SandboxFile::parse(text, "sandbox.yaml").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("sandbox.yaml:{message}"),
            "{text}"
        );
        assert_eq!(error.hint().as_deref().unwrap_or_default(), *hint, "{text}");
        assert_eq!(error.file(), "sandbox.yaml");
        assert!(error.position().is_some());
    }
}

#[test]
fn what_the_parser_refuses_is_named_with_its_place() {
    for text in ["env: {", "env:\n\tA: b", "env: {A: *b}", "env: 'x"] {
        let error = SandboxFile::parse(text, "sandbox.yaml")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("sandbox.yaml:"), "{error}");
        assert!(error.contains(": this is not valid YAML: "), "{error}");
    }
}

#[test]
fn an_empty_file_says_nothing() {
    for text in ["", "# nothing\n", "---\n", "{}"] {
        let file = SandboxFile::parse(text, "sandbox.yaml").unwrap();
        assert!(file.network_sandbox() && !file.runs_command());
        assert_eq!(file.allowlist(), None);
    }
}

/// A text, its message behind the file's name, and its hint.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "mask_secrets: {}",
        "1:1: unknown key `mask_secrets` in the configuration",
        "did you mean `masked_secrets`?",
    ),
    (
        "network:\n  x: 1",
        "1:1: unknown key `network` in the configuration",
        "did you mean `network_sandbox`?",
    ),
    (
        "volumes: []",
        "1:1: unknown key `volumes` in the configuration",
        "the keys are env, pass_env, masked_secrets, signing_credentials, network_sandbox, resource_limits, build_network, secrets",
    ),
    (
        "- env",
        "1:1: the configuration must be a map, not a list",
        "write a map",
    ),
    (
        "env: {A: 1}\n---\nenv: {B: 2}",
        "2:1: the configuration is one document, and here begins another",
        "remove the `---` line and what follows it",
    ),
    (
        "env: {A: 1}\nenv: {B: 2}",
        "2:1: the key `env` stands here twice",
        "merge the two into one",
    ),
    (
        "!x {env: {A: 1}}",
        "1:1: the tag `!x` means nothing here",
        TAGS,
    ),
    (
        "env: [A=1]",
        "1:6: env must be a map, not a list",
        "write a map",
    ),
    (
        "env:\n  A:\n",
        "2:4: env.A must be a string, a number or a boolean, not nothing",
        "write a string, a number or a boolean",
    ),
    (
        "env:\n  A: [b]",
        "2:6: env.A must be a string, a number or a boolean, not a list",
        "write a string, a number or a boolean",
    ),
    (
        "env:\n  'A B': c",
        "2:3: env: `A B` cannot be the name of a variable",
        "use letters, digits and `_`",
    ),
    (
        "env:\n  A: !file x",
        "2:6: env.A has a tag that means nothing here",
        "write `!env NAME`, `!secret NAME` or `!secret? NAME`, or put quotes around a value that begins with `!`",
    ),
    (
        "env:\n  A: !env",
        "2:6: env.A: `!env` needs a name behind it",
        "write `!env NAME`",
    ),
    (
        "env:\n  A: !secret? [X]",
        "2:6: env.A: `!secret?` needs a name behind it",
        "write `!secret? NAME`",
    ),
    (
        "pass_env: HOME",
        "1:11: pass_env must be a list, not a string",
        "put a `- ` before each item, or brackets around them",
    ),
    (
        "pass_env: [HOME, A=1]",
        "1:18: pass_env[1]: `A=1` cannot be the name of a variable",
        "use letters, digits and `_`",
    ),
    (
        "pass_env: [!env A]",
        "1:12: the tag `!env` means nothing here",
        TAGS,
    ),
    (
        "masked_secrets: {T: ghp}",
        "1:21: masked_secrets.T must be a map, not a string",
        "write a map",
    ),
    (
        "masked_secrets:\n  T:\n    scopes: [a.test]\n    headers: [Authorization]",
        "2:3: masked_secrets.T has no `value`",
        "add `value:`",
    ),
    (
        "masked_secrets:\n  T:\n    value: !env T\n    headers: [Authorization]",
        "2:3: masked_secrets.T has no `scopes`",
        "add `scopes:`",
    ),
    (
        "masked_secrets:\n  T:\n    value: !env T\n    scopes: []",
        "4:13: masked_secrets.T.scopes cannot be `[]`: it must be at least one host",
        "write at least one host",
    ),
    (
        "masked_secrets:\n  T:\n    value: !env T\n    scopes: [a.test]",
        "2:3: masked_secrets.T does not say where in a request it is replaced",
        NOWHERE,
    ),
    (
        "masked_secrets:\n  T: {value: !env T, scopes: [a.test], headers: [], path: false, body: false}",
        "2:3: masked_secrets.T does not say where in a request it is replaced",
        NOWHERE,
    ),
    (
        "masked_secrets:\n  T:\n    value: !env T\n    scopes: ['https://a.test']",
        "4:14: masked_secrets.T.scopes[0] cannot be `https://a.test`: a host has no scheme",
        "a scope is a host and nothing else, such as api.example.com or \"*.example.com\"",
    ),
    (
        "masked_secrets:\n  T: {scope: [a.test]}",
        "2:7: unknown key `scope` in masked_secrets.T",
        "did you mean `scopes`?",
    ),
    (
        "masked_secrets:\n  T: {headers: ['Authorization:']}",
        "2:17: masked_secrets.T.headers[0] cannot be `Authorization:`: it must be the name of a header, such as Authorization",
        "write the name of a header, such as Authorization",
    ),
    (
        "masked_secrets:\n  T: {query: ['']}",
        "2:15: masked_secrets.T.query[0] cannot be ``: it must be the name of a parameter",
        "write the name of a parameter",
    ),
    (
        "masked_secrets:\n  T: {path: /x}",
        "2:13: masked_secrets.T.path must be true or false, not a string",
        "write true or false",
    ),
    (
        "masked_secrets:\n  T: {allow_foreign_credentials: 'yes'}",
        "2:34: masked_secrets.T.allow_foreign_credentials must be true or false, not a string",
        "write true or false",
    ),
    (
        "masked_secrets:\n  T: {body: json}",
        "2:13: masked_secrets.T.body must be true, false or a map with `content_types`, not a string",
        "write true, false or a map with `content_types`",
    ),
    (
        "masked_secrets:\n  T: {body: {types: [a/b]}}",
        "2:14: unknown key `types` in masked_secrets.T.body",
        "the keys are content_types",
    ),
    (
        "masked_secrets:\n  T: {body: {}}",
        "2:13: masked_secrets.T.body has no `content_types`",
        "add `content_types:`",
    ),
    (
        "masked_secrets:\n  T: {body: {content_types: []}}",
        "2:29: masked_secrets.T.body.content_types cannot be `[]`: it must be at least one type",
        "write at least one type",
    ),
    (
        "masked_secrets:\n  T: {body: {content_types: ['application/json; charset=utf-8']}}",
        "2:30: masked_secrets.T.body.content_types[0] cannot be `application/json; charset=utf-8`: \
         it must be a type without parameters, such as application/json",
        "write a type without parameters, such as application/json",
    ),
    (
        "masked_secrets:\n  A=B: {value: !env T, scopes: [a.test], path: true}",
        "2:3: masked_secrets: `A=B` cannot be the name of a variable",
        "use letters, digits and `_`",
    ),
    (
        "signing_credentials:\n  s3: {access_key_id: !env A, secret_access_key: !env B, scopes: ['*.amazonaws.com']}",
        "2:3: signing_credentials.s3 has no `type`",
        "add `type:`",
    ),
    (
        "signing_credentials:\n  s3: {type: aws}",
        "2:14: signing_credentials.s3.type cannot be `aws`: it must be aws-sigv4",
        "write aws-sigv4",
    ),
    (
        "signing_credentials:\n  s3: {type: aws-sigv4, secret_access_key: !env B, scopes: [a.test]}",
        "2:3: signing_credentials.s3 has no `access_key_id`",
        "add `access_key_id:`",
    ),
    (
        "signing_credentials:\n  s3: {type: aws-sigv4, access_key_id: !env A, scopes: [a.test]}",
        "2:3: signing_credentials.s3 has no `secret_access_key`",
        "add `secret_access_key:`",
    ),
    (
        "signing_credentials:\n  s3: {type: aws-sigv4, access_key_id: !env A, secret_access_key: !env B}",
        "2:3: signing_credentials.s3 has no `scopes`",
        "add `scopes:`",
    ),
    (
        "signing_credentials:\n  s3: {access_key: !env A}",
        "2:8: unknown key `access_key` in signing_credentials.s3",
        "did you mean `access_key_id`?",
    ),
    (
        "signing_credentials:\n  s3: {access_key_id: !secret my key}",
        "2:23: signing_credentials.s3.access_key_id: `my key` cannot be the name of a variable",
        "use letters, digits and `_`",
    ),
    (
        "network_sandbox: 'off'",
        "1:18: network_sandbox must be true, false or a map, not a string",
        "write true, false or a map",
    ),
    (
        "network_sandbox: {enable: true}",
        "1:19: unknown key `enable` in network_sandbox",
        "did you mean `enabled`?",
    ),
    (
        "network_sandbox: {allowlist: ''}",
        "1:30: network_sandbox.allowlist cannot be ``: it must be a path",
        "write a path",
    ),
    (
        "resource_limits: {mem: 1g}",
        "1:19: unknown key `mem` in resource_limits",
        "did you mean `memory`?",
    ),
    (
        "resource_limits: {timeout: 5m}",
        "1:28: resource_limits.timeout must be a number, not a string",
        "write a number",
    ),
    (
        "resource_limits: {timeout: 1.5}",
        "1:28: resource_limits.timeout cannot be `1.5`: it must be a whole number",
        "write a whole number",
    ),
    (
        "resource_limits: {timeout: 0}",
        "1:28: resource_limits.timeout cannot be `0`: it must be a number of seconds from 1 to 31536000",
        "write a number of seconds from 1 to 31536000",
    ),
    (
        "resource_limits: {memory: 10x}",
        "1:27: resource_limits.memory: `10x` is not an amount of memory; say for example 512m or 4g",
        "",
    ),
    (
        "resource_limits: {cpus: 0}",
        "1:25: resource_limits.cpus: `0` is not a number of processor cores; say for example 2 or 0.5",
        "",
    ),
    (
        "resource_limits: {pids: 0}",
        "1:25: resource_limits.pids: `0` is not a number of processes; it must be at least 1",
        "",
    ),
    (
        "secrets: {env: true}",
        "1:11: unknown key `env` in secrets",
        "did you mean `environment`?",
    ),
    (
        "secrets: {environment: GH_TOKEN}",
        "1:24: secrets.environment must be true, false or a list of names, not a string",
        "write true, false or a list of names",
    ),
    (
        "secrets: {file: [x]}",
        "1:17: secrets.file must be a string, not a list",
        "write a string",
    ),
    (
        "secrets: {command: pass show x}",
        "1:20: secrets.command must be a list, not a string",
        "put a `- ` before each item, or brackets around them",
    ),
    (
        "secrets: {command: []}",
        "1:20: secrets.command cannot be `[]`: it must be a program and its arguments",
        "write a program and its arguments",
    ),
    (
        "secrets: {command: [pass, show, x]}",
        "1:20: secrets.command has no `{name}` among its arguments",
        "write it where the secret's name belongs: [pass, show, \"cordon/{name}\"]",
    ),
    (
        "secrets: {timeout: -1}",
        "1:20: secrets.timeout cannot be `-1`: it must be a number of seconds from 1 to 31536000",
        "write a number of seconds from 1 to 31536000",
    ),
];

const TAGS: &str =
    "`!env`, `!secret` and `!secret?` stand before values of variables and secrets only";

const NOWHERE: &str = "add `headers: [Authorization]`, or one of `query`, `path` and `body`";
