use std::{fs, os::unix::fs::symlink};

use super::*;
use crate::git::fixture::{Fixture, git};

async fn open(fixture: &Fixture, reference: &str) -> Result<GitSnapshot, GitError> {
    GitSnapshot::open(&fixture.path(), reference).await
}

async fn text(snapshot: &GitSnapshot, path: &str) -> Option<String> {
    let content = snapshot.file(Path::new(path)).await.unwrap();
    content.map(|content| String::from_utf8(content).unwrap())
}

const FILE: &str = ".cordon/sandbox.yaml";
const CONTAINER: &str = ".cordon/container";
const DOCKERFILE: &str = ".cordon/container/Dockerfile";

#[tokio::test]
async fn files_are_those_of_the_commit_and_not_of_the_working_tree() {
    let fixture = Fixture::new();
    fixture.write(FILE, "env: { A: two }\n");
    for reference in [
        "HEAD",
        "main",
        "refs/heads/main",
        &fixture.git(&["rev-parse", "HEAD"]),
    ] {
        let snapshot = open(&fixture, reference).await.unwrap();
        assert_eq!(text(&snapshot, FILE).await.unwrap(), "env: { A: one }\n");
        assert_eq!(text(&snapshot, ".cordon/none").await, None);
        assert_eq!(text(&snapshot, "none/at/all").await, None);
        assert_eq!(snapshot.commit(), fixture.git(&["rev-parse", "HEAD"]));
        assert_eq!(snapshot.is_hash(), reference.len() == 40);
    }
}

#[tokio::test]
async fn a_recipe_from_a_commit_is_the_one_of_the_same_files_on_disk() {
    let fixture = Fixture::new();
    let snapshot = open(&fixture, "main").await.unwrap();
    let recipe = snapshot
        .recipe(Path::new(DOCKERFILE), Path::new(CONTAINER))
        .await
        .unwrap();
    let on_disk = Recipe::read(
        &fixture.path().join(DOCKERFILE),
        &fixture.path().join(CONTAINER),
    )
    .unwrap();
    assert_eq!(recipe, on_disk);
    let whole = snapshot
        .recipe(Path::new(DOCKERFILE), Path::new("."))
        .await
        .unwrap();
    assert_ne!(whole.digest(), recipe.digest());
    let absent = snapshot
        .recipe(Path::new("Dockerfile"), Path::new(CONTAINER))
        .await;
    assert!(
        matches!(absent, Err(SandboxError::Git(GitError::NoFile { .. }))),
        "{absent:?}"
    );
}

#[tokio::test]
async fn refs_are_found_wherever_git_keeps_them() {
    let fixture = Fixture::new();
    let first = fixture.git(&["rev-parse", "HEAD"]);
    fixture.git(&["tag", "-a", "-m", "x", "v1"]);
    fixture.git(&["tag", "-a", "-m", "x", "v2", "v1"]);
    fixture.git(&["update-ref", "refs/remotes/origin/topic", &first]);
    fixture.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/topic",
    ]);
    fixture.git(&["pack-refs", "--all"]);
    fixture.git(&["gc", "-q"]);
    let second = fixture.commit("two");
    for (name, commit) in [
        ("v1", &first),
        ("v2", &first),
        ("origin/topic", &first),
        ("origin", &first),
        ("main", &second),
        ("HEAD", &second),
    ] {
        assert_eq!(
            open(&fixture, name).await.unwrap().commit(),
            *commit,
            "{name}"
        );
    }
    assert!(matches!(
        open(&fixture, "nothing").await,
        Err(GitError::UnknownReference { .. })
    ));
    let tree = fixture.git(&["rev-parse", "HEAD^{tree}"]);
    assert!(matches!(
        open(&fixture, &tree).await,
        Err(GitError::NotACommit { .. })
    ));
}

#[tokio::test]
async fn a_repository_with_sha_256_and_a_bare_one_are_read_too() {
    let fixture = Fixture::with(&["--object-format=sha256"]);
    let snapshot = open(&fixture, "main").await.unwrap();
    assert_eq!(snapshot.commit().len(), 64);
    assert_eq!(text(&snapshot, FILE).await.unwrap(), "env: { A: one }\n");
    let bare = fixture.beside("bare.git");
    git(
        &fixture.path(),
        &["clone", "-q", "--bare", ".", bare.to_str().unwrap()],
    );
    let snapshot = GitSnapshot::open(&bare, "main").await.unwrap();
    assert_eq!(text(&snapshot, FILE).await.unwrap(), "env: { A: one }\n");
}

#[tokio::test]
async fn nothing_that_a_repository_names_is_run() {
    let fixture = Fixture::new();
    fixture.poison();
    let snapshot = open(&fixture, "main").await.unwrap();
    assert_eq!(text(&snapshot, FILE).await.unwrap(), "env: { A: one }\n");
    snapshot
        .recipe(Path::new(DOCKERFILE), Path::new(CONTAINER))
        .await
        .unwrap();
    assert_eq!(fixture.ran(), "");
    // The trap works: what reads the same file in the usual way runs it.
    crate::git::fixture::ask_git(&fixture.path(), &["diff", "HEAD"]);
    crate::git::fixture::ask_git(&fixture.path(), &["status"]);
    assert_ne!(fixture.ran(), "");
}

#[tokio::test]
async fn an_object_that_is_not_there_is_not_fetched() {
    let fixture = Fixture::new();
    let blob = fixture.git(&["rev-parse", &format!("HEAD:{FILE}")]);
    let evil = fixture.evil().display().to_string();
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "/nowhere"),
        ("remote.origin.uploadpack", evil.as_str()),
    ] {
        fixture.git(&["config", key, value]);
    }
    fs::remove_file(
        fixture
            .git_dir()
            .join("objects")
            .join(&blob[..2])
            .join(&blob[2..]),
    )
    .unwrap();
    let snapshot = open(&fixture, "main").await.unwrap();
    let read = snapshot.file(Path::new(FILE)).await;
    assert!(matches!(read, Err(GitError::NoObject { .. })), "{read:?}");
    assert_eq!(fixture.ran(), "");
    crate::git::fixture::ask_git(&fixture.path(), &["cat-file", "-p", &blob]);
    assert_ne!(fixture.ran(), "", "the trap works");
}

#[tokio::test]
async fn content_under_the_name_of_another_is_refused() {
    let fixture = Fixture::new();
    let commit = fixture.git(&["rev-parse", "HEAD"]);
    let loose = |id: &str| {
        fixture
            .git_dir()
            .join("objects")
            .join(&id[..2])
            .join(&id[2..])
    };
    let blob = fixture.git(&["rev-parse", &format!("HEAD:{FILE}")]);
    fixture.write("evil.yaml", "network_sandbox: false\n");
    let evil = fixture.git(&["hash-object", "-w", "evil.yaml"]);
    fs::remove_file(loose(&blob)).unwrap();
    fs::copy(loose(&evil), loose(&blob)).unwrap();
    assert_eq!(
        fixture.git(&["cat-file", "-p", &blob]),
        "network_sandbox: false",
        "git believes it"
    );
    for reference in ["main", &commit] {
        let read = open(&fixture, reference)
            .await
            .unwrap()
            .file(Path::new(FILE))
            .await;
        assert!(matches!(read, Err(GitError::Forged { .. })), "{read:?}");
    }
    let other = fixture.git(&["commit-tree", "-m", "other", "HEAD^{tree}"]);
    fs::remove_file(loose(&commit)).unwrap();
    fs::copy(loose(&other), loose(&commit)).unwrap();
    assert!(matches!(
        open(&fixture, &commit).await,
        Err(GitError::Forged { .. })
    ));
}

#[tokio::test]
async fn replacements_and_grafts_count_for_nothing() {
    let fixture = Fixture::new();
    let commit = fixture.git(&["rev-parse", "HEAD"]);
    let blob = fixture.git(&["rev-parse", &format!("HEAD:{FILE}")]);
    fixture.write("evil.yaml", "network_sandbox: false\n");
    let evil = fixture.git(&["hash-object", "-w", "evil.yaml"]);
    fixture.git(&["replace", &blob, &evil]);
    assert_eq!(
        fixture.git(&["cat-file", "-p", &blob]),
        "network_sandbox: false",
        "git believes it"
    );
    let snapshot = open(&fixture, &commit).await.unwrap();
    assert_eq!(text(&snapshot, FILE).await.unwrap(), "env: { A: one }\n");
}

#[tokio::test]
async fn a_repository_that_leads_elsewhere_is_refused() {
    let elsewhere = Fixture::new();
    let alternates = Fixture::new();
    let objects = elsewhere.git_dir().join("objects");
    fs::write(
        alternates.git_dir().join("objects/info/alternates"),
        objects.to_str().unwrap(),
    )
    .unwrap();
    assert!(matches!(
        open(&alternates, "main").await,
        Err(GitError::Borrowing { .. })
    ));

    let linked = Fixture::new();
    fs::remove_dir_all(linked.git_dir()).unwrap();
    fs::write(
        linked.git_dir(),
        format!("gitdir: {}\n", elsewhere.git_dir().display()),
    )
    .unwrap();
    let error = open(&linked, "main").await.unwrap_err();
    assert!(
        matches!(&error, GitError::Linked { target, .. } if *target == elsewhere.git_dir()),
        "{error:?}"
    );

    fs::remove_file(linked.git_dir()).unwrap();
    symlink(elsewhere.git_dir(), linked.git_dir()).unwrap();
    assert!(matches!(
        open(&linked, "main").await,
        Err(GitError::Symlink { .. })
    ));

    let store = Fixture::new();
    fs::remove_dir_all(store.git_dir().join("objects")).unwrap();
    symlink(&objects, store.git_dir().join("objects")).unwrap();
    assert!(matches!(
        open(&store, "main").await,
        Err(GitError::Symlink { .. })
    ));
}

#[tokio::test]
async fn refs_that_are_no_refs_are_refused() {
    let fixture = Fixture::new();
    let main = fixture.git_dir().join("refs/heads/main");
    let commit = fs::read_to_string(&main).unwrap();
    let refused = async |what: &str| {
        let opened = open(&fixture, "main").await;
        assert!(opened.is_err(), "{what}: {opened:?}");
    };
    fs::write(&main, "ref: refs/heads/main\n").unwrap();
    refused("a circle").await;
    fs::write(&main, "ref: ../../../outside\n").unwrap();
    refused("a way out").await;
    fs::write(&main, "x".repeat(1 << 20)).unwrap();
    refused("no hash").await;
    fs::remove_file(&main).unwrap();
    fs::write(fixture.beside("outside"), &commit).unwrap();
    symlink(fixture.beside("outside"), &main).unwrap();
    refused("a link").await;
    fs::remove_file(&main).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &main,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    refused("a pipe").await;
    fs::remove_file(&main).unwrap();
    fs::write(&main, &commit).unwrap();
    open(&fixture, "main").await.unwrap();
    fixture.git(&["tag", "main"]);
    assert!(matches!(
        open(&fixture, "main").await,
        Err(GitError::Ambiguous { .. })
    ));
}

#[tokio::test]
async fn links_and_submodules_in_a_commit_are_refused() {
    let fixture = Fixture::new();
    symlink("/etc/passwd", fixture.path().join("link")).unwrap();
    symlink(".cordon", fixture.path().join("rules")).unwrap();
    symlink("/etc/passwd", fixture.path().join(CONTAINER).join("link")).unwrap();
    fs::create_dir(fixture.path().join("sub")).unwrap();
    fs::create_dir(fixture.path().join(CONTAINER).join("sub")).unwrap();
    let first = fixture.git(&["rev-parse", "HEAD"]);
    fixture.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{first},sub"),
    ]);
    fixture.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{first},.cordon/container/sub"),
    ]);
    fixture.commit("two");
    let snapshot = open(&fixture, "main").await.unwrap();
    for (path, what) in [
        ("link", "a symbolic link"),
        ("rules/sandbox.yaml", "a symbolic link"),
        ("sub", "a submodule"),
        ("sub/sandbox.yaml", "a submodule"),
        (".cordon", "a directory"),
        (".cordon/sandbox.yaml/x", "a file"),
    ] {
        let error = snapshot
            .file(Path::new(path))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(what), "{path}: {error}");
    }
    for path in ["../x", "/etc/passwd", "a/../../x"] {
        assert!(
            matches!(
                snapshot.file(Path::new(path)).await,
                Err(GitError::Path { .. })
            ),
            "{path}"
        );
    }
    let error = snapshot
        .recipe(Path::new(DOCKERFILE), Path::new(CONTAINER))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("at `main`"), "{error}");
    fixture.write(".cordon/container/.dockerignore", "left-out\nlink\nsub\n");
    fixture.commit("three");
    let snapshot = open(&fixture, "main").await.unwrap();
    snapshot
        .recipe(Path::new(DOCKERFILE), Path::new(CONTAINER))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let fixture = Fixture::new();
    fixture.write(FILE, &"#\n".repeat(1 << 20));
    fixture.commit("large");
    let snapshot = open(&fixture, "main").await.unwrap();
    let read = snapshot.file(Path::new(FILE)).await;
    assert!(matches!(read, Err(GitError::TooLarge { .. })), "{read:?}");
    // Ten directories in each of ten, nine levels deep, in a dozen objects.
    let mut below = fixture.git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    for _ in 0..9 {
        let lines: String = (0..10)
            .map(|name| format!("040000 tree {below}\t{name}\n"))
            .collect();
        fs::write(fixture.beside("lines"), lines).unwrap();
        below = git(
            &fixture.path(),
            &[
                "-c",
                &format!(
                    "alias.x=!git mktree < {}",
                    fixture.beside("lines").display()
                ),
                "x",
            ],
        );
    }
    let commit = fixture.git(&["commit-tree", "-m", "bomb", &below]);
    let snapshot = open(&fixture, &commit).await.unwrap();
    let walked = snapshot.walk(Path::new("."), &Ignore::default()).await;
    assert!(
        matches!(
            walked,
            Err(SandboxError::Image(cordon_image::Error::TooMuch { .. }))
        ),
        "{walked:?}"
    );
}
