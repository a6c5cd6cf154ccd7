use std::os::unix::fs::MetadataExt;

use super::*;
use crate::git::fixture::{Fixture, ask_git, git};

fn source(fixture: &Fixture, reference: &str) -> CloneSource {
    format!("{}{reference}", fixture.path().display())
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_clone_is_whole_and_its_own() {
    let fixture = Fixture::new();
    fixture.poison();
    let place = fixture.beside("clone");
    let mut clone = clone_workspace(&source(&fixture, ""), &place)
        .await
        .unwrap();
    clone.keep();
    assert_eq!(fixture.ran(), "", "nothing that the source names is run");
    assert_eq!(
        clone.commit().unwrap(),
        git(&fixture.path(), &["rev-parse", "HEAD"])
    );
    let dot_git = place.join(".git");
    assert!(!dot_git.join("hooks").exists() && !dot_git.join("objects/info/alternates").exists());
    for file in files(&dot_git) {
        assert_eq!(
            fs::metadata(&file).unwrap().nlink(),
            1,
            "{}",
            file.display()
        );
    }
    fs::remove_dir_all(fixture.path()).unwrap();
    git(&place, &["fsck", "--strict"]);
    assert_eq!(git(&place, &["status", "--porcelain"]), "");
    let settings = git(&place, &["config", "--local", "-l", "--name-only"]);
    for name in settings.lines() {
        let known = ["core.", "remote.origin.", "branch.main."]
            .iter()
            .any(|part| name.starts_with(part));
        assert!(known, "{settings}");
    }
    assert!(
        !settings.contains("fsmonitor") && !settings.contains("uploadpack"),
        "{settings}"
    );
    assert!(git(&place, &["reflog", "--format=%gn %ge"]).starts_with("cordon cordon@localhost"));
}

#[tokio::test]
async fn a_branch_a_tag_or_a_commit_is_checked_out() {
    let fixture = Fixture::new();
    let first = fixture.git(&["rev-parse", "HEAD"]);
    fixture.git(&["tag", "v1"]);
    fixture.git(&["branch", "topic"]);
    let second = fixture.commit("two");
    for (number, (reference, commit)) in [
        ("", &second),
        ("#main", &second),
        ("#v1", &first),
        ("#topic", &first),
        ("#refs/heads/topic", &first),
        (format!("#{first}").as_str(), &first),
    ]
    .into_iter()
    .enumerate()
    {
        let place = fixture.beside(&format!("clone-{number}"));
        let clone = clone_workspace(&source(&fixture, reference), &place)
            .await
            .unwrap();
        assert_eq!(git(&place, &["rev-parse", "HEAD"]), *commit, "{reference}");
        assert_eq!(clone.commit().as_ref(), Some(commit));
        assert!(place.join(".cordon/sandbox.yaml").exists());
        drop(clone);
        assert!(!place.exists(), "it was not kept");
    }
}

#[tokio::test]
async fn a_clone_that_fails_says_why_and_leaves_nothing() {
    let fixture = Fixture::new();
    let place = fixture.beside("clone");
    for reference in ["#nothing", "#0123456789abcdef0123456789abcdef01234567"] {
        let error = clone_workspace(&source(&fixture, reference), &place)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, GitError::CloneFailed { said, .. } if said.contains(&reference[1..])),
            "{error}"
        );
        assert!(!place.exists());
    }
    fs::create_dir(&place).unwrap();
    fs::write(place.join("mine"), "").unwrap();
    let error = clone_workspace(&source(&fixture, ""), &place)
        .await
        .unwrap_err();
    assert!(matches!(error, GitError::Occupied { .. }), "{error}");
    assert!(place.join("mine").exists(), "what was there stays");
}

#[tokio::test]
async fn a_source_that_lacks_objects_fetches_nothing_and_a_damaged_one_is_refused() {
    let fixture = Fixture::new();
    let blob = fixture.git(&["rev-parse", "HEAD:.cordon/sandbox.yaml"]);
    let loose = fixture
        .git_dir()
        .join("objects")
        .join(&blob[..2])
        .join(&blob[2..]);
    let evil = fixture.evil().display().to_string();
    fixture.write("evil.yaml", "network_sandbox: false\n");
    let other = fixture.git(&["hash-object", "-w", "evil.yaml"]);
    let other = fixture
        .git_dir()
        .join("objects")
        .join(&other[..2])
        .join(&other[2..]);
    fs::remove_file(&loose).unwrap();
    fs::copy(&other, &loose).unwrap();
    let place = fixture.beside("clone");
    assert!(
        clone_workspace(&source(&fixture, ""), &place)
            .await
            .is_err(),
        "forged content"
    );
    fs::remove_file(&loose).unwrap();
    for (key, value) in [
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "/nowhere"),
        ("remote.origin.uploadpack", evil.as_str()),
        ("uploadpack.packObjectsHook", evil.as_str()),
    ] {
        fixture.git(&["config", key, value]);
    }
    assert!(
        clone_workspace(&source(&fixture, ""), &place)
            .await
            .is_err(),
        "a missing object"
    );
    assert_eq!(fixture.ran(), "");
    assert!(!place.exists());
}

#[tokio::test]
async fn a_source_cannot_pass_off_another_repository_of_the_host() {
    let private = Fixture::new();
    let place = private.beside("clone");
    let refused = async |fixture: &Fixture, what: &str| {
        let cloned = clone_workspace(&source(fixture, ""), &place).await;
        assert!(cloned.is_err() && !place.exists(), "{what}: {cloned:?}");
    };
    let elsewhere = private.git_dir();
    for (name, target) in [
        ("refs/heads/main", "refs/heads/main"),
        ("refs/heads", "refs/heads"),
        ("HEAD", "HEAD"),
        ("objects/pack", "objects/pack"),
        ("objects/aa", "objects"),
    ] {
        let fixture = Fixture::new();
        let path = fixture.git_dir().join(name);
        drop(fs::remove_file(&path));
        drop(fs::remove_dir_all(&path));
        std::os::unix::fs::symlink(elsewhere.join(target), path).unwrap();
        refused(&fixture, name).await;
    }
    let fixture = Fixture::new();
    fs::write(
        fixture.git_dir().join("commondir"),
        elsewhere.to_str().unwrap(),
    )
    .unwrap();
    refused(&fixture, "commondir").await;
    let fixture = Fixture::new();
    fs::write(
        fixture.git_dir().join("objects/info/alternates"),
        elsewhere.join("objects").to_str().unwrap(),
    )
    .unwrap();
    refused(&fixture, "alternates").await;
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.git_dir()).unwrap();
    fs::write(
        fixture.git_dir(),
        format!("gitdir: {}\n", elsewhere.display()),
    )
    .unwrap();
    refused(&fixture, "a file in place of .git").await;
}

#[tokio::test]
async fn submodules_and_filters_of_the_source_stay_what_they_are() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.path().join("x")).unwrap();
    fixture.write(".gitattributes", "* filter=evil\n");
    let evil = fixture.evil();
    fixture.write(
        ".gitmodules",
        &format!(
            "[submodule \"x\"]\n\tpath = x\n\turl = {}\n\tupdate = !{}\n",
            fixture.path().display(),
            evil.display()
        ),
    );
    let first = fixture.git(&["rev-parse", "HEAD"]);
    fixture.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{first},x"),
    ]);
    fixture.commit("two");
    let place = fixture.beside("clone");
    // Git itself refuses such a `.gitmodules`; without its command it is cloned and left alone.
    let error = clone_workspace(&source(&fixture, ""), &place)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("gitmodules"), "{error}");
    fixture.write(
        ".gitmodules",
        &format!(
            "[submodule \"x\"]\n\tpath = x\n\turl = {}\n",
            fixture.path().display()
        ),
    );
    fixture.git(&["add", ".gitmodules"]);
    fixture.git(&["commit", "-q", "--amend", "-m", "three"]);
    let _clone = clone_workspace(&source(&fixture, ""), &place)
        .await
        .unwrap();
    assert_eq!(fs::read_dir(place.join("x")).unwrap().count(), 0);
    assert_eq!(fixture.ran(), "");
}

#[tokio::test]
async fn credentials_are_told_to_their_host_and_to_no_other() {
    let source: CloneSource = "https://reader:s3%20cret@git.example.com:8443/a"
        .parse()
        .unwrap();
    let home = Git::new(CONFIG).unwrap();
    let ask = async |host: &str| {
        let call = credentials(home.call("credential"), source.login.as_ref())
            .args(["credential", "fill"]);
        let input = format!("protocol=https\nhost={host}\n\n");
        let output = call.output(input.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        ask("git.example.com:8443")
            .await
            .contains("username=reader\npassword=s3 cret\n")
    );
    for host in [
        "other.example.com",
        "git.example.com",
        "git.example.com.evil:8443",
    ] {
        assert!(!ask(host).await.contains("s3"), "{host}");
    }
    assert!(!format!("{source:?}").contains("s3"));
}

#[tokio::test]
async fn an_empty_repository_can_be_cloned() {
    let fixture = Fixture::new();
    let empty = fixture.beside("empty");
    git(&fixture.path(), &["init", "-q", empty.to_str().unwrap()]);
    let clone = clone_workspace(
        &empty.to_str().unwrap().parse().unwrap(),
        &fixture.beside("clone"),
    )
    .await
    .unwrap();
    assert_eq!(clone.commit(), None);
    assert!(ask_git(clone.path(), &["status"]).0);
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}
