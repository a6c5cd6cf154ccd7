//! A policy that changes while a command runs.

use std::{fs, time::Duration};

use origin::Origin;

use crate::setup::{DEBIAN, Run, eventually, on_every_engine};

on_every_engine! {
    fn an_allowlist_that_is_edited_is_in_force_and_a_broken_one_is_not(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin_with(&origin, "").flags(["--watch-allowlist", "--verbose"]).sh(
            "ask() { curl -s -o /dev/null -w '%{http_code}\\n' https://api.example.com/; }; ask; touch asked; \
             until [ \"$(ask)\" = 200 ]; do sleep 0.1; done; touch allowed; until [ -e broken ]; do sleep 0.1; done; ask",
        );
        let running = run.start();
        let limit = Duration::from_secs(30);
        eventually("it was refused", limit, || run.path("asked").exists());
        let allowed = "domains: [{ host: api.example.com, private_addresses: true }]\n";
        fs::write(run.path("allowlist.yaml"), allowed).unwrap();
        eventually("it was allowed", limit, || run.path("allowed").exists());
        fs::write(run.path("allowlist.yaml"), "domains: nonsense\n").unwrap();
        std::thread::sleep(Duration::from_secs(3));
        fs::write(run.path("broken"), "").unwrap();
        let ended = running.end();
        assert_eq!(ended.stdout, "403\n200\n", "{ended:?}");
        assert!(ended.stderr.contains("the allowlist is still the one before"), "{ended:?}");
    }

    fn a_secret_that_expires_is_renewed_behind_the_same_surrogate(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"]).flags(["--config", "sandbox.yaml"]).sh(
            "ask() { curl -sS -o /dev/null -H \"Authorization: Bearer $TOKEN\" https://api.example.com/; }; ask; touch asked; \
             until [ -e renewed ]; do sleep 0.1; done; ask",
        );
        let config = "secrets: { command: [cat, \"./{name}\"] }\nmasked_secrets:\n  TOKEN: { value: !secret TOKEN, scopes: [api.example.com], headers: [Authorization], expires_after: 2 }\n";
        fs::write(run.path("sandbox.yaml"), config).unwrap();
        let values = ["first-value-0123456789abcdef", "other-value-fedcba9876543210"];
        fs::write(run.path("TOKEN"), values[0]).unwrap();
        let running = run.start();
        eventually("it has asked", Duration::from_secs(30), || run.path("asked").exists());
        fs::write(run.path("TOKEN"), values[1]).unwrap();
        std::thread::sleep(Duration::from_secs(4));
        fs::write(run.path("renewed"), "").unwrap();
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(origin.authorizations(), values.map(|value| format!("Bearer {value}")));
    }

    fn while_a_secret_is_renewed_requests_go_on(setup) {
        let origin = Origin::start(&["api.example.com"]);
        let run = Run::new(setup).image(DEBIAN).origin(&origin, &["api.example.com"]).flags(["--config", "sandbox.yaml"]).sh(
            "ask() { curl -sS -o /dev/null -H \"Authorization: Bearer $TOKEN\" https://api.example.com/; }; ask; \
             until [ -e renewing ]; do sleep 0.1; done; ask",
        );
        let config = "secrets: { command: [sh, ./look-up, \"{name}\"] }\nmasked_secrets:\n  TOKEN: { value: !secret TOKEN, scopes: [api.example.com], headers: [Authorization], expires_after: 2 }\n";
        fs::write(run.path("sandbox.yaml"), config).unwrap();
        // The first look-up answers at once, the second takes longer than the command.
        let look_up = "if [ -e asked ]; then touch renewing; exec sleep 30; fi\ntouch asked; echo a-value-0123456789abcdef\n";
        fs::write(run.path("look-up"), look_up).unwrap();
        let ended = run.start().end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(origin.authorizations(), ["Bearer a-value-0123456789abcdef"; 2]);
    }
}
