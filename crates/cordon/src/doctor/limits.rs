//! Whether limits of memory, processor and processes take effect.

use cordon_engine::{CgroupVersion, Engine};

use super::{Code, Finding, machine::Machine};

/// What is to be said of the control groups that an engine has.
pub(super) fn check(engine: &Engine, machine: &Machine) -> Finding {
    let (kind, facts) = (engine.kind(), engine.facts());
    let version = match facts.cgroups {
        CgroupVersion::V1 => 1,
        CgroupVersion::V2 => 2,
    };
    if facts.limits {
        let message = format!("{kind} enforces limits (control groups version {version})");
        return Finding::ok(Code::Limits, message);
    }
    let message = format!("{kind} cannot enforce limits of memory, processors and processes here");
    match (facts.rootless, facts.cgroups) {
        (true, CgroupVersion::V2) => Finding::warning(
            Code::LimitsUnenforced,
            format!("{message}: {}", undelegated(machine)),
        )
        .hint(DELEGATE),
        (true, CgroupVersion::V1) => Finding::warning(
            Code::LimitsUnenforced,
            format!("{message}: without root that takes version 2 of the control groups"),
        )
        .hint(UNIFY),
        (false, _) => Finding::warning(Code::LimitsUnenforced, message).hint(ENABLE_MEMORY),
    }
}

/// Which controllers the user's own part of the hierarchy lacks.
fn undelegated(machine: &Machine) -> String {
    let path = format!(
        "sys/fs/cgroup/user.slice/user-{0}.slice/user@{0}.service/cgroup.controllers",
        machine.uid
    );
    let have = machine.read(&path).unwrap_or_default();
    let lacking: Vec<_> = ["cpu", "memory", "pids"]
        .into_iter()
        .filter(|wanted| !have.split_whitespace().any(|have| have == *wanted))
        .collect();
    format!("the system does not hand {} to users", lacking.join(", "))
}

const DELEGATE: &str = "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload";

const UNIFY: &str = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&systemd.unified_cgroup_hierarchy=1 /' /etc/default/grub && sudo update-grub && sudo reboot";

const ENABLE_MEMORY: &str = "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&cgroup_enable=memory swapaccount=1 /' /etc/default/grub && sudo update-grub && sudo reboot";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_system_does_not_delegate_is_named() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine {
            root: root.path().to_owned(),
            uid: 1000,
        };
        assert!(undelegated(&machine).contains("cpu, memory, pids"));
        let slice = root
            .path()
            .join("sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service");
        fs::create_dir_all(&slice).unwrap();
        fs::write(slice.join("cgroup.controllers"), "memory pids\n").unwrap();
        assert_eq!(
            undelegated(&machine),
            "the system does not hand cpu to users"
        );
    }
}
