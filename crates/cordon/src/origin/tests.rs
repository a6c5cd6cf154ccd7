use super::*;
use crate::git::fixture::Fixture;

#[tokio::test]
async fn paths_inside_the_repository_are_read_from_the_commit() {
    let fixture = Fixture::new();
    let rules = ConfigSource::around(&fixture.path().join(".cordon"), "main")
        .await
        .unwrap();
    fixture.write(".cordon/sandbox.yaml", "network_sandbox: false\n");
    let file = fixture.path().join(".cordon/sandbox.yaml");
    let winding = fixture.path().join("x/../.cordon/./sandbox.yaml");
    for path in [&file, &winding] {
        assert!(
            rules
                .sandbox_file(path)
                .await
                .unwrap()
                .unwrap()
                .network_sandbox()
        );
    }
    assert!(
        !ConfigSource::Worktree
            .sandbox_file(&file)
            .await
            .unwrap()
            .unwrap()
            .network_sandbox()
    );
    let new = fixture.path().join(".cordon/new.yaml");
    fs::write(&new, "").unwrap();
    assert_eq!(rules.text(&new).await.unwrap(), None);
    assert!(!rules.has(&new).await.unwrap());
    let host = fixture.beside("host.yaml");
    fs::write(&host, "domains: []\n").unwrap();
    assert_eq!(rules.text(&host).await.unwrap().unwrap(), "domains: []\n");
}

#[tokio::test]
async fn a_link_in_the_working_tree_does_not_lead_out_of_the_commit() {
    let fixture = Fixture::new();
    let rules = ConfigSource::around(&fixture.path(), "main").await.unwrap();
    fs::rename(fixture.path().join(".cordon"), fixture.beside("evil")).unwrap();
    std::os::unix::fs::symlink(fixture.beside("evil"), fixture.path().join(".cordon")).unwrap();
    fs::write(
        fixture.beside("evil/sandbox.yaml"),
        "network_sandbox: false\n",
    )
    .unwrap();
    let file = rules
        .sandbox_file(&fixture.path().join(".cordon/sandbox.yaml"))
        .await
        .unwrap();
    assert!(file.unwrap().network_sandbox());
}

#[tokio::test]
async fn a_named_repository_is_read_from_its_top() {
    let fixture = Fixture::new();
    let rules = ConfigSource::repository(&fixture.path(), "main")
        .await
        .unwrap();
    let text = rules
        .text(Path::new(".cordon/network-allowlist.yaml"))
        .await
        .unwrap();
    assert_eq!(text.unwrap(), "domains: [one.example.com]\n");
    let dockerfile = Path::new(".cordon/container/Dockerfile");
    rules
        .recipe(dockerfile, Path::new(".cordon/container"))
        .await
        .unwrap();
    let mixed = rules.recipe(dockerfile, &fixture.path()).await;
    assert!(
        matches!(mixed, Err(SandboxError::Git(GitError::Path { .. }))),
        "{mixed:?}"
    );
}

#[tokio::test]
async fn a_ref_can_be_moved_by_whoever_can_write_its_repository() {
    let fixture = Fixture::new();
    let by_name = ConfigSource::around(&fixture.path(), "main").await.unwrap();
    let hash = fixture.git(&["rev-parse", "HEAD"]);
    let by_hash = ConfigSource::around(&fixture.path(), &hash).await.unwrap();
    let beside = fixture.beside("elsewhere");
    fs::create_dir(&beside).unwrap();
    for (mount, movable) in [
        (Mount::read_write(fixture.path(), "/workspace"), true),
        (
            Mount::read_write(fixture.git_dir().join("refs"), "/refs"),
            true,
        ),
        (Mount::read_write(fixture.beside(""), "/all"), true),
        (Mount::read_only(fixture.path(), "/workspace"), false),
        (Mount::read_write(beside, "/workspace"), false),
    ] {
        assert_eq!(
            by_name.can_be_moved_by(std::slice::from_ref(&mount)),
            movable,
            "{mount:?}"
        );
        assert!(!by_hash.can_be_moved_by(&[mount]));
    }
}

#[tokio::test]
async fn a_repository_is_looked_for_upwards_and_must_be_ours() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path().join("deep")).unwrap();
    ConfigSource::around(&fixture.path().join("deep"), "main")
        .await
        .unwrap();
    let nowhere = tempfile::tempdir().unwrap();
    let error = ConfigSource::around(nowhere.path(), "main")
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::NotARepository { .. }), "{error}");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(fixture.git_dir(), Some(12345), None).unwrap();
        let error = ConfigSource::around(&fixture.path(), "main")
            .await
            .unwrap_err();
        assert!(matches!(error, GitError::Foreign { .. }), "{error}");
        ConfigSource::repository(&fixture.path(), "main")
            .await
            .unwrap();
    }
}
