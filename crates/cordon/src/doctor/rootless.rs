//! Whether an ordinary user can have containers: ranges of ids, the programs that map them, and a
//! kernel that allows it.

use super::{Code, Finding, machine::Machine};

/// What is to be said; nothing for root, who needs none of it.
pub(super) fn check(machine: &Machine) -> Vec<Finding> {
    if machine.uid == 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let user = machine.user().unwrap_or_else(|| machine.uid.to_string());
    for (file, code, flag) in [
        ("etc/subuid", Code::SubuidMissing, "--add-subuids"),
        ("etc/subgid", Code::SubgidMissing, "--add-subgids"),
    ] {
        let ranges = Ranges::read(&machine.read(file).unwrap_or_default());
        if !ranges.has(&user, machine.uid) {
            let message =
                format!("/{file} has no range for {user}, so that only images with one user work");
            let hint = format!(
                "sudo usermod {flag} {} {user} && podman system migrate",
                ranges.free()
            );
            found.push(Finding::error(code, message).hint(hint));
        }
    }
    if !machine.has_program("newuidmap") || !machine.has_program("newgidmap") {
        let message =
            "newuidmap and newgidmap are not installed, so that no range of ids can be mapped";
        found.push(
            Finding::error(Code::NewuidmapMissing, message).hint("sudo apt-get install uidmap"),
        );
    }
    found.extend(kernel(machine));
    if found.is_empty() {
        found.push(Finding::ok(
            Code::Rootless,
            format!("{user} can have containers without root"),
        ));
    }
    found
}

/// What keeps the kernel from making user namespaces for ordinary users.
fn kernel(machine: &Machine) -> Vec<Finding> {
    let mut found = Vec::new();
    let off = |setting: &str, value: &str, message: &str| {
        let line = format!("{setting}={value}");
        Finding::error(Code::UserNamespacesOff, message)
            .hint(format!("sudo sysctl --write {line}"))
            .hint(format!(
                "echo {line} | sudo tee /etc/sysctl.d/60-user-namespaces.conf"
            ))
    };
    if machine.setting("user/max_user_namespaces") == Some(0) {
        let message = "the kernel allows no user namespaces (user.max_user_namespaces is 0)";
        found.push(off("user.max_user_namespaces", "15000", message));
    }
    if machine.setting("kernel/unprivileged_userns_clone") == Some(0) {
        let message =
            "the kernel gives user namespaces to root only (kernel.unprivileged_userns_clone is 0)";
        found.push(off("kernel.unprivileged_userns_clone", "1", message));
    }
    // Ubuntu's podman package brings a profile that is exempt from the restriction.
    let restricted = machine.setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1);
    if restricted && machine.read("etc/apparmor.d/podman").is_none() {
        let message = "AppArmor takes the privileges out of the user namespaces of programs without a profile, and podman has none";
        let setting = "kernel.apparmor_restrict_unprivileged_userns=0";
        found.push(
            Finding::error(Code::AppArmorRestricts, message)
                .hint(PROFILE)
                .hint(format!("sudo sysctl --write {setting}")),
        );
    }
    found
}

/// What /etc/subuid or /etc/subgid says.
struct Ranges(Vec<(String, u32, u32)>);

impl Ranges {
    fn read(text: &str) -> Self {
        let ranges = text.lines().filter_map(|line| {
            let mut fields = line.trim().split(':');
            let (name, start, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some((name.to_owned(), start.parse().ok()?, count.parse().ok()?))
        });
        Self(ranges.collect())
    }

    /// A range is written under a name or a number.
    fn has(&self, user: &str, uid: u32) -> bool {
        let uid = uid.to_string();
        let of = |name: &String| name == user || *name == uid;
        self.0.iter().any(|(name, _, count)| of(name) && *count > 0)
    }

    /// A range that nobody has.
    fn free(&self) -> String {
        let ends = self
            .0
            .iter()
            .map(|(_, start, count)| u64::from(*start) + u64::from(*count));
        let start = ends.max().unwrap_or_default().max(FIRST);
        format!("{start}-{}", start + COUNT - 1)
    }
}

/// The profile that Ubuntu's own package brings: nothing confined, user namespaces allowed.
const PROFILE: &str = r"printf 'abi <abi/4.0>,\ninclude <tunables/global>\nprofile podman /usr/bin/podman flags=(unconfined) {\n  userns,\n}\n' | sudo tee /etc/apparmor.d/podman && sudo apparmor_parser --replace /etc/apparmor.d/podman";

/// Where distributions begin.
const FIRST: u64 = 100_000;

/// As many ids as images use.
const COUNT: u64 = 65_536;

#[cfg(test)]
mod tests;
