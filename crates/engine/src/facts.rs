//! What is known about an engine, and remembered between runs.
//!
//! A record is found again by the program's path, size and time of change (so that an upgrade asks
//! anew without a call to find out), by the user, and by the variables that send a client elsewhere.

use std::{
    collections::BTreeMap,
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::{Resource, getrlimit, getuid};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tempfile::NamedTempFile;

use crate::{Error, Kind, Rlimit, process::Call};

/// What an engine said of itself, and what was found out by using it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The form of this record.
    schema: u32,
    /// Its version.
    pub version: String,
    /// It runs without root on the host.
    pub rootless: bool,
    /// Its containers share this machine's kernel; false for a virtual machine or another host.
    pub local: bool,
    /// The name of the OCI runtime that it uses by itself.
    pub default_runtime: String,
    /// The OCI runtime that is used instead, because the default one cannot start containers here.
    pub runtime: Option<PathBuf>,
    /// The control groups of the host.
    pub cgroups: CgroupVersion,
    /// Memory, processor and process limits take effect.
    pub limits: bool,
    /// SELinux separates containers from the host's files and sockets.
    pub selinux: bool,
}

/// The control groups of a host.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// The older form, also where the newer one is mounted beside it.
    V1,
    /// The unified form.
    V2,
}

impl Facts {
    /// The record of that engine, if there is one that still holds.
    pub(crate) fn recall(kind: Kind, program: &Path, cache: &Path) -> Option<Self> {
        let text = fs::read_to_string(record(kind, program, cache)?).ok()?;
        let facts: Self = serde_json::from_str(&text).ok()?;
        (facts.schema == SCHEMA).then_some(facts)
    }

    /// Asks the engine, and remembers the answer.
    pub(crate) async fn learn(kind: Kind, program: &Path, cache: &Path) -> Result<Self, Error> {
        let facts = match kind {
            Kind::Podman => Self::from_podman(&ask(kind, program, "json").await?),
            Kind::Docker => {
                let mut facts = Self::from_docker(&ask(kind, program, "{{json .}}").await?);
                facts.local &= !docker_endpoint(program).await.is_some_and(|at| is_far(&at));
                facts
            }
        };
        facts.remember(kind, program, cache);
        Ok(facts)
    }

    /// Keeps the record. A cache that cannot be written costs a call the next time and nothing else.
    pub(crate) fn remember(&self, kind: Kind, program: &Path, cache: &Path) {
        if let Err(error) = self.write(kind, program, cache) {
            tracing::debug!(%error, "what is known of {kind} is not remembered");
        }
    }

    fn write(&self, kind: Kind, program: &Path, cache: &Path) -> std::io::Result<()> {
        let Some(path) = record(kind, program, cache) else {
            return Ok(());
        };
        fs::create_dir_all(cache)?;
        let mut file = NamedTempFile::new_in(cache)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.flush()?;
        file.persist(path)?;
        Ok(())
    }

    fn from_podman(info: &PodmanInfo) -> Self {
        let host = &info.host;
        let cgroups = match host.cgroup_version.as_str() {
            "v2" => CgroupVersion::V2,
            _ => CgroupVersion::V1,
        };
        Self {
            schema: SCHEMA,
            version: info.version.version.clone(),
            rootless: host.security.rootless,
            local: !host.service_is_remote,
            default_runtime: match &host.oci_runtime {
                Some(runtime) => runtime.name.clone(),
                None => "the default runtime".to_owned(),
            },
            runtime: None,
            cgroups,
            // Without root, only the newer control groups can be handed to a user, and then only the
            // controllers that the system delegates.
            limits: !host.security.rootless
                || (cgroups == CgroupVersion::V2
                    && ["memory", "pids"]
                        .iter()
                        .all(|wanted| host.cgroup_controllers.iter().any(|have| have == wanted))),
            selinux: host.security.selinux_enabled,
        }
    }

    fn from_docker(info: &DockerInfo) -> Self {
        let kernel = rustix::system::uname();
        let same_kernel = kernel.release().to_bytes() == info.kernel_version.as_bytes();
        let has = |name: &str| {
            info.security_options
                .iter()
                .any(|option| option.starts_with(name))
        };
        Self {
            schema: SCHEMA,
            version: info.server_version.clone(),
            rootless: has("name=rootless"),
            local: same_kernel && !info.operating_system.contains("Docker Desktop"),
            default_runtime: info.default_runtime.clone(),
            runtime: None,
            cgroups: if info.cgroup_version == "2" {
                CgroupVersion::V2
            } else {
                CgroupVersion::V1
            },
            limits: info.memory_limit && info.pids_limit,
            selinux: has("name=selinux"),
        }
    }

    #[cfg(test)]
    pub(crate) fn assumed() -> Self {
        Self {
            schema: SCHEMA,
            version: "1".into(),
            rootless: false,
            local: true,
            default_runtime: "runc".into(),
            runtime: None,
            cgroups: CgroupVersion::V2,
            limits: true,
            selinux: false,
        }
    }

    /// The first number of its version; 0 where that is not a number.
    #[must_use]
    pub fn major(&self) -> u32 {
        let digits = self.version.split('.').next().unwrap_or_default();
        digits.parse().unwrap_or_default()
    }

    /// Limits of open files and processes that this host lets a container have.
    ///
    /// An engine's own defaults are above what a process without `CAP_SYS_RESOURCE` may set, and the
    /// container then does not start; what the caller itself may have is always allowed.
    #[must_use]
    pub fn rlimits(&self) -> Vec<Rlimit> {
        let limit = |name, resource, most: u64| {
            let hard = getrlimit(resource).maximum.unwrap_or(most).min(most);
            Rlimit {
                name,
                soft: hard.min(SOFT_MAX),
                hard,
            }
        };
        vec![
            limit("nofile", Resource::Nofile, NOFILE_MAX),
            // Podman lowers its own limit to the number of process ids before it starts anything.
            limit("nproc", Resource::Nproc, pid_max()),
        ]
    }
}

async fn ask<T: DeserializeOwned>(kind: Kind, program: &Path, format: &str) -> Result<T, Error> {
    let verb = format!("{kind} info");
    let output = Call::new(program, &verb)
        .args(["info", "--format", format])
        .output(b"")
        .await?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let not_answering = |stderr: &str| Error::NotAnswering {
        kind,
        stderr: stderr.trim().to_owned(),
    };
    if !output.status.success() {
        return Err(not_answering(&output.stderr));
    }
    // Docker's client of some versions answers with success and a list of errors.
    if let Ok(Failed { server_errors }) = serde_json::from_str(&stdout)
        && !server_errors.is_empty()
    {
        return Err(not_answering(&server_errors.join("; ")));
    }
    serde_json::from_str(&stdout).map_err(|source| Error::Unreadable { verb, source })
}

/// Where docker's client finds its daemon, by variable or by context; clients without contexts do not say.
async fn docker_endpoint(program: &Path) -> Option<String> {
    let call = Call::new(program, "docker context inspect").args([
        "context",
        "inspect",
        "--format",
        "{{.Endpoints.docker.Host}}",
    ]);
    let output = call.success(b"").await.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a daemon is called over a network: machines that are installed alike have the same kernel.
fn is_far(endpoint: &str) -> bool {
    !endpoint.is_empty() && !endpoint.starts_with("unix://")
}

/// Where the record of that engine is kept.
fn record(kind: Kind, program: &Path, cache: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(program).ok()?;
    let mut key = DefaultHasher::new();
    (
        program,
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    )
        .hash(&mut key);
    getuid().as_raw().hash(&mut key);
    let elsewhere: BTreeMap<_, _> = [
        "DOCKER_HOST",
        "DOCKER_CONTEXT",
        "CONTAINER_HOST",
        "CONTAINER_CONNECTION",
        "XDG_RUNTIME_DIR",
        "CONTAINERS_CONF",
    ]
    .iter()
    .filter_map(|name| Some((*name, env::var_os(name)?)))
    .collect();
    elsewhere.hash(&mut key);
    Some(cache.join(format!("{kind}-{:016x}.json", key.finish())))
}

fn pid_max() -> u64 {
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    text.trim().parse().unwrap_or(PID_MAX)
}

#[derive(Deserialize)]
struct Failed {
    #[serde(rename = "ServerErrors", default)]
    server_errors: Vec<String>,
}

#[derive(Deserialize)]
struct PodmanInfo {
    host: PodmanHost,
    version: PodmanVersion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodmanHost {
    #[serde(default)]
    cgroup_version: String,
    #[serde(default)]
    cgroup_controllers: Vec<String>,
    /// Null where the runtime that is configured does not answer.
    oci_runtime: Option<PodmanRuntime>,
    security: PodmanSecurity,
    #[serde(default)]
    service_is_remote: bool,
}

#[derive(Deserialize)]
struct PodmanRuntime {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodmanSecurity {
    rootless: bool,
    #[serde(default)]
    selinux_enabled: bool,
}

#[derive(Deserialize)]
struct PodmanVersion {
    #[serde(rename = "Version")]
    version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerInfo {
    server_version: String,
    #[serde(default)]
    operating_system: String,
    #[serde(default)]
    kernel_version: String,
    #[serde(default)]
    default_runtime: String,
    #[serde(default)]
    cgroup_version: String,
    #[serde(default)]
    memory_limit: bool,
    #[serde(default)]
    pids_limit: bool,
    #[serde(default)]
    security_options: Vec<String>,
}

const SCHEMA: u32 = 2;

/// Programs that close every possible descriptor when they start crawl above this.
const SOFT_MAX: u64 = 65_536;

/// What engines themselves give where they may.
const NOFILE_MAX: u64 = 1_048_576;

/// The kernel's own default, where it does not say.
const PID_MAX: u64 = 32_768;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_says_what_it_is() {
        let info = r#"{"host": {"cgroupVersion": "v1", "cgroupControllers": [], "ociRuntime": {"name": "crun"},
            "security": {"rootless": true, "selinuxEnabled": false}, "serviceIsRemote": false},
            "version": {"Version": "4.3.1"}}"#;
        let facts = Facts::from_podman(&serde_json::from_str(info).unwrap());
        assert_eq!(
            (facts.rootless, facts.local, facts.limits),
            (true, true, false)
        );
        assert_eq!(facts.default_runtime, "crun");
    }

    #[test]
    fn podman_without_root_limits_what_it_was_given_controllers_for() {
        let info = |controllers: &str| {
            let info = format!(
                r#"{{"host": {{"cgroupVersion": "v2", "cgroupControllers": [{controllers}], "ociRuntime": {{"name": "crun"}},
                "security": {{"rootless": true}}}}, "version": {{"Version": "5.0"}}}}"#
            );
            Facts::from_podman(&serde_json::from_str(&info).unwrap())
        };
        assert!(info(r#""cpu", "memory", "pids""#).limits);
        assert!(!info(r#""cpu""#).limits);
    }

    #[test]
    fn podman_machine_is_not_local_and_limits_what_it_was_given_controllers_for() {
        let info = r#"{"host": {"arch": "arm64", "cgroupManager": "systemd", "cgroupVersion": "v2",
            "cgroupControllers": ["cpuset", "cpu", "io", "memory", "pids"], "os": "linux",
            "kernel": "6.12.7-200.fc41.aarch64", "networkBackend": "netavark", "rootlessNetworkCmd": "pasta",
            "ociRuntime": {"name": "crun", "package": "crun-1.20", "path": "/usr/bin/crun"},
            "remoteSocket": {"path": "unix:///run/user/501/podman/podman.sock", "exists": true},
            "security": {"apparmorEnabled": false, "rootless": true, "seccompEnabled": true, "selinuxEnabled": true},
            "serviceIsRemote": true},
            "version": {"APIVersion": "5.5.2", "Version": "5.5.2", "OsArch": "linux/arm64"}}"#;
        let facts = Facts::from_podman(&serde_json::from_str(info).unwrap());
        assert_eq!(
            (facts.local, facts.rootless, facts.limits, facts.selinux),
            (false, true, true, true)
        );
        assert_eq!((facts.major(), facts.cgroups), (5, CgroupVersion::V2));
    }

    #[test]
    fn docker_desktop_is_not_local_and_limits() {
        let info = r#"{"ID": "x", "Driver": "overlayfs", "MemoryLimit": true, "SwapLimit": true, "PidsLimit": true,
            "KernelVersion": "6.10.14-linuxkit", "OperatingSystem": "Docker Desktop", "OSType": "linux",
            "Architecture": "aarch64", "ServerVersion": "28.3.2", "CgroupDriver": "cgroupfs", "CgroupVersion": "2",
            "Runtimes": {"runc": {"path": "runc"}}, "DefaultRuntime": "runc",
            "SecurityOptions": ["name=seccomp,profile=unconfined", "name=cgroupns"], "ClientInfo": {"Context": "desktop-linux"}}"#;
        let facts = Facts::from_docker(&serde_json::from_str(info).unwrap());
        assert_eq!(
            (facts.local, facts.rootless, facts.limits, facts.selinux),
            (false, false, true, false)
        );
        assert_eq!((facts.major(), facts.cgroups), (28, CgroupVersion::V2));
    }

    #[test]
    fn docker_in_a_virtual_machine_is_not_local() {
        let kernel = rustix::system::uname();
        let here = kernel.release().to_str().unwrap();
        let local = |system: &str, kernel: &str| {
            let info = format!(
                r#"{{"ServerVersion": "27", "OperatingSystem": "{system}", "KernelVersion": "{kernel}"}}"#
            );
            Facts::from_docker(&serde_json::from_str(&info).unwrap()).local
        };
        assert!(local("Debian GNU/Linux 12", here));
        assert!(!local("Docker Desktop", here));
        assert!(!local("Debian GNU/Linux 12", "5.15.0-linuxkit"));
    }

    #[test]
    fn docker_over_a_network_is_not_local() {
        for far in [
            "tcp://192.0.2.1:2376",
            "ssh://build@host.example",
            "http://h",
        ] {
            assert!(is_far(far), "{far}");
        }
        for here in ["", "unix:///var/run/docker.sock"] {
            assert!(!is_far(here), "{here}");
        }
    }

    #[test]
    fn a_record_is_found_again_until_the_program_changes() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("podman");
        fs::write(&program, "one").unwrap();
        let facts = Facts::assumed();
        facts.remember(Kind::Podman, &program, directory.path());
        assert_eq!(
            Facts::recall(Kind::Podman, &program, directory.path()),
            Some(facts)
        );
        assert_eq!(
            Facts::recall(Kind::Docker, &program, directory.path()),
            None
        );
        fs::write(&program, "another").unwrap();
        assert_eq!(
            Facts::recall(Kind::Podman, &program, directory.path()),
            None
        );
    }

    #[test]
    fn limits_are_never_above_what_this_process_may_have() {
        for limit in Facts::assumed().rlimits() {
            assert!(limit.soft <= limit.hard);
        }
    }
}
