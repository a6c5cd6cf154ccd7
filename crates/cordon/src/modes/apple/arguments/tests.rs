use super::*;

fn words(arguments: &[OsString]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_str().unwrap())
        .collect();
    words.join(" ")
}

fn run<'a>(limits: &'a ResourceLimits, mounts: &'a [Mount]) -> Run<'a> {
    Run {
        name: "cordon-a-s-1",
        owner: "boot-1-2",
        image: "debian:12",
        mounts,
        workdir: WORKSPACE,
        limits,
        profile: Profile::Standard,
        user: None,
        network: AppleNetwork::None,
        marker: "marker",
    }
}

#[test]
fn a_machine_has_no_network_no_names_and_few_capabilities() {
    let limits = ResourceLimits::default();
    assert_eq!(
        words(&run(&limits, &[]).arguments().unwrap()),
        "run --interactive --rm --init --progress none --name cordon-a-s-1 \
         --label cordon.owner=boot-1-2 --network none --no-dns --cap-drop ALL \
         --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER --cap-add SETGID --cap-add SETUID \
         --workdir /workspace --entrypoint /bin/sh debian:12 \
         -c printf '%s\\n' \"$0\"; read -r _ marker"
    );
}

#[test]
fn a_strict_machine_is_the_callers_without_any_capability_and_cannot_be_written() {
    let limits = Profile::Strict.limits(&ResourceLimits {
        cpus: Some("2".parse().unwrap()),
        ..ResourceLimits::default()
    });
    let strict = Run {
        profile: Profile::Strict,
        user: Some(User { uid: 501, gid: 20 }),
        ..run(&limits, &[])
    };
    let words = words(&strict.arguments().unwrap());
    assert!(!words.contains("--cap-add"));
    assert!(words.contains(
        " --cap-drop ALL --read-only --mount type=tmpfs,target=/tmp,mode=1777,size=1g \
         --mount type=tmpfs,target=/home,mode=1777,size=100m --user 501:20 --ulimit nproc=256:256 \
         --cpus 2 --memory 4096M "
    ));
    let env = environment(Profile::Strict, []).unwrap();
    assert_eq!(env["HOME"], "/home");
}

#[test]
fn a_network_is_left_to_the_program_only_where_that_was_said() {
    let limits = ResourceLimits::default();
    let free = Run {
        network: AppleNetwork::Unrestricted,
        ..run(&limits, &[])
    };
    let words = words(&free.arguments().unwrap());
    assert!(!words.contains("--network") && !words.contains("--no-dns"));
}

#[test]
fn nothing_of_the_host_is_forwarded() {
    let limits = ResourceLimits::default();
    let words = words(&run(&limits, &[]).arguments().unwrap());
    for flag in [
        "--ssh",
        "--publish",
        "--publish-socket",
        "--virtualization",
        "--env",
    ] {
        assert!(!words.contains(flag), "{flag}");
    }
}

#[test]
fn limits_are_rounded_to_what_a_machine_can_be_held_to() {
    let cases = [
        ("0.5", "--cpus 1 "),
        ("1", "--cpus 1 "),
        ("1.9", "--cpus 1 "),
        ("2", "--cpus 2 "),
        ("8.01", "--cpus 8 "),
    ];
    for (cpus, expected) in cases {
        let limits = ResourceLimits {
            cpus: Some(cpus.parse().unwrap()),
            memory: Some("4g".parse().unwrap()),
            ..ResourceLimits::default()
        };
        let words = words(&run(&limits, &[]).arguments().unwrap());
        assert!(
            words.contains(&format!("{expected}--memory 4096M ")),
            "{words}"
        );
    }
    let little = ResourceLimits {
        memory: Some("199m".parse().unwrap()),
        ..ResourceLimits::default()
    };
    assert!(matches!(
        run(&little, &[]).arguments(),
        Err(AppleError::LittleMemory { least: 200 })
    ));
}

#[test]
fn limits_that_cannot_be_held_are_named() {
    let limits = |cpus: &str| ResourceLimits {
        cpus: Some(cpus.parse().unwrap()),
        pids: Some("256".parse().unwrap()),
        ..ResourceLimits::default()
    };
    let root = Some(User { uid: 0, gid: 0 });
    let somebody = Some(User { uid: 501, gid: 20 });
    assert_eq!(unheld(&limits("0.5"), None), ["pids", "cpus below 1"]);
    assert_eq!(unheld(&limits("2"), root), ["pids"]);
    assert!(unheld(&limits("2"), somebody).is_empty());
    assert!(unheld(&ResourceLimits::default(), None).is_empty());
}

#[test]
fn a_path_is_written_in_the_form_that_can_hold_it() {
    let limits = ResourceLimits::default();
    let mount = |path: &str| {
        let mounts = [Mount::read_only(path, "/data")];
        run(&limits, &mounts).arguments().map(|all| words(&all))
    };
    assert!(
        mount("/a,b=c")
            .unwrap()
            .contains(" --volume /a,b=c:/data:ro ")
    );
    assert!(
        mount("/a:b")
            .unwrap()
            .contains(" --mount type=bind,source=/a:b,target=/data,readonly ")
    );
    for path in ["/a:b,c", "/a:b=c"] {
        assert!(
            matches!(mount(path), Err(AppleError::MountPath { .. })),
            "{path}"
        );
    }
    let mounts = [Mount::read_write("/src", WORKSPACE)];
    let writable = words(&run(&limits, &mounts).arguments().unwrap());
    assert!(writable.contains(" --volume /src:/workspace "));
}

#[test]
fn an_image_is_never_an_option() {
    let limits = ResourceLimits::default();
    for image in ["", "--ssh", "-v/:/host"] {
        let run = Run {
            image,
            ..run(&limits, &[])
        };
        assert!(matches!(run.arguments(), Err(AppleError::ImageName { .. })));
    }
}

#[test]
fn values_of_variables_are_no_arguments() {
    let pairs = [
        ("TOKEN".to_owned(), "first".to_owned()),
        ("PATH".to_owned(), "/bin".to_owned()),
        ("TOKEN".to_owned(), "hidden".to_owned()),
    ];
    let env = environment(Profile::Standard, &pairs).unwrap();
    let exec = Exec {
        container: "name",
        workdir: "/workspace/sub",
        env: &env,
        input: Input::Open,
        command: &ExecCommand::Argv(vec!["make".into(), "--help".into()]),
        marker: "marker",
    };
    assert_eq!(
        words(&exec.arguments()),
        "exec --interactive --workdir /workspace/sub --env IS_SANDBOX --env PATH=/bin --env TOKEN \
         name /bin/sh -c printf '%s\\n' \"$0\" >&2; exec \"$@\" marker make --help"
    );
    let inherited: Vec<_> = exec.inherited().map(|(_, value)| value.as_str()).collect();
    assert_eq!(inherited, ["1", "hidden"]);
}

#[test]
fn a_line_is_given_to_a_shell_of_its_own() {
    let env = BTreeMap::new();
    let exec = Exec {
        container: "name",
        workdir: WORKSPACE,
        env: &env,
        input: Input::Closed,
        command: &ExecCommand::Shell("a && b".into()),
        marker: "marker",
    };
    let words = words(&exec.arguments());
    assert!(words.starts_with("exec --workdir /workspace name /bin/sh -c "));
    assert!(words.ends_with(" marker /bin/sh -lc a && b"), "{words}");
}

#[test]
fn variables_that_would_turn_the_program_are_refused() {
    for name in [
        "DYLD_INSERT_LIBRARIES",
        "LD_PRELOAD",
        "CONTAINER_DEFAULT_PLATFORM",
        "ssh_auth_sock",
        "__CF_USER_TEXT_ENCODING",
        "A=B",
        "--ssh",
        "",
    ] {
        let pair = (name.to_owned(), "value".to_owned());
        assert!(
            matches!(
                environment(Profile::Standard, [&pair]),
                Err(AppleError::Variable { .. })
            ),
            "{name}"
        );
    }
}

#[test]
fn a_directory_is_found_in_the_container_or_refused() {
    let inside = |cwd: &str| inside(Path::new("/home/me/work"), Path::new(cwd)).ok();
    assert_eq!(inside("").as_deref(), Some("/workspace"));
    assert_eq!(inside("a/./b").as_deref(), Some("/workspace/a/b"));
    assert_eq!(inside("/home/me/work/a").as_deref(), Some("/workspace/a"));
    assert_eq!(inside("/workspace/a").as_deref(), Some("/workspace/a"));
    for cwd in [
        "..",
        "a/../..",
        "/",
        "/home/me/worker",
        "/home/me/work/../x",
        "a\0b",
    ] {
        assert_eq!(inside(cwd), None, "{cwd}");
    }
}
