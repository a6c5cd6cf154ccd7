//! The machine as the checks see it: files below a root, and who is asking.
//!
//! A test gives another root and puts there what this machine does not have.

use std::{fs, path::PathBuf};

use cordon_engine::process;
use rustix::process::getuid;

/// Where the checks look.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) root: PathBuf,
    pub(super) uid: u32,
}

impl Machine {
    /// This one.
    pub(super) fn this() -> Self {
        Self {
            root: "/".into(),
            uid: getuid().as_raw(),
        }
    }

    /// A file of the machine; `None` where there is none that can be read.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// A setting of the kernel, such as `user/max_user_namespaces`.
    pub(super) fn setting(&self, name: &str) -> Option<u64> {
        let text = self.read(&format!("proc/sys/{name}"))?;
        text.trim().parse().ok()
    }

    /// The user's name.
    pub(super) fn user(&self) -> Option<String> {
        let passwd = self.read("etc/passwd")?;
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, uid) = (fields.next()?, fields.nth(1)?);
            (uid.parse() == Ok(self.uid)).then(|| name.to_owned())
        })
    }

    /// Whether a program is there, on the search path or where distributions put it.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let usual = ["usr/bin", "bin", "usr/local/bin", "usr/sbin"];
        let there = |directory: &&str| self.root.join(directory).join(name).is_file();
        usual.iter().any(there)
            || (self.root == std::path::Path::new("/") && process::which(name).is_some())
    }
}
