use std::fs;

use tempfile::TempDir;

use super::*;

/// A machine of files, on which everything is as it should be.
struct Files(TempDir);

impl Files {
    fn good() -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files
            .put(
                "etc/passwd",
                "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
            )
            .put("etc/subuid", "root:100000:65536\nann:165536:65536\n")
            .put("etc/subgid", "root:100000:65536\n1000:165536:65536\n")
            .put("usr/bin/newuidmap", "")
            .put("usr/bin/newgidmap", "")
            .put("proc/sys/user/max_user_namespaces", "15000\n")
            .put("proc/sys/kernel/unprivileged_userns_clone", "1\n");
        files
    }

    fn put(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn without(&self, path: &str) -> &Self {
        fs::remove_file(self.0.path().join(path)).unwrap();
        self
    }

    fn found(&self) -> Vec<(Code, Vec<String>)> {
        let machine = Machine {
            root: self.0.path().to_owned(),
            uid: 1000,
        };
        let found = check(&machine).into_iter();
        found.map(|finding| (finding.code, finding.hints)).collect()
    }

    fn codes(&self) -> Vec<Code> {
        self.found().into_iter().map(|(code, _)| code).collect()
    }
}

#[test]
fn a_machine_as_it_should_be_is_said_to_be() {
    assert_eq!(Files::good().codes(), [Code::Rootless]);
}

#[test]
fn root_needs_none_of_it() {
    let machine = Machine {
        root: "/nowhere".into(),
        uid: 0,
    };
    assert_eq!(check(&machine), []);
}

#[test]
fn a_missing_range_is_found_and_the_hint_takes_one_that_nobody_has() {
    let files = Files::good();
    files.put("etc/subuid", "root:100000:65536\nbob:165536:65536\n");
    let [(code, hints)] = &files.found()[..] else {
        panic!("one finding")
    };
    assert_eq!(*code, Code::SubuidMissing);
    assert_eq!(
        hints[0],
        "sudo usermod --add-subuids 231072-296607 ann && podman system migrate"
    );
    files.without("etc/subuid").without("etc/subgid");
    assert_eq!(files.codes(), [Code::SubuidMissing, Code::SubgidMissing]);
    assert!(files.found()[0].1[0].contains("100000-165535"));
}

#[test]
fn an_empty_range_is_none() {
    let files = Files::good();
    files.put("etc/subgid", "ann:165536:0\n");
    assert_eq!(files.codes(), [Code::SubgidMissing]);
}

#[test]
fn missing_programs_and_a_kernel_that_refuses_are_found() {
    let files = Files::good();
    files.without("usr/bin/newgidmap");
    assert_eq!(files.codes(), [Code::NewuidmapMissing]);
    let files = Files::good();
    files.put("proc/sys/user/max_user_namespaces", "0\n");
    assert_eq!(files.codes(), [Code::UserNamespacesOff]);
    let files = Files::good();
    files.put("proc/sys/kernel/unprivileged_userns_clone", "0\n");
    assert_eq!(files.codes(), [Code::UserNamespacesOff]);
}

#[test]
fn the_restriction_of_apparmor_is_found_unless_podman_has_a_profile() {
    let files = Files::good();
    files.put(
        "proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1\n",
    );
    assert_eq!(files.codes(), [Code::AppArmorRestricts]);
    files.put(
        "etc/apparmor.d/podman",
        "profile podman /usr/bin/podman flags=(unconfined) { userns, }\n",
    );
    assert_eq!(files.codes(), [Code::Rootless]);
}

#[test]
fn files_that_make_no_sense_are_no_range_and_no_panic() {
    let files = Files::good();
    files.put("etc/subuid", "ann\nann:x:y\n:::\nann:1:\n\0\n");
    assert_eq!(files.codes(), [Code::SubuidMissing]);
    files.put("etc/subuid", &format!("bob:{0}:{0}\n", u64::MAX));
    assert_eq!(files.codes(), [Code::SubuidMissing]);
}
