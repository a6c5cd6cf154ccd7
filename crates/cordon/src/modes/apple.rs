//! Commands in virtual machines of Apple's `container`: one for each agent and session.
//!
//! A machine has no network interface at all, or, where the configuration says so in as many words, the
//! program's own network under no policy. There is nothing between: whatever would need a policy is
//! refused.

mod arguments;
mod client;
mod error;
mod exec;
mod machine;
mod name;

use std::{
    collections::HashMap,
    fmt, fs,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak},
    time::Duration,
};

use rustix::process::{getgid, getuid};
use tokio::{
    sync::{OnceCell, watch},
    time::timeout,
};

pub use self::error::AppleError;
use self::{
    arguments::{Exec, Input, Run, User, WORKSPACE},
    client::Client,
    exec::{Order, Ran},
    machine::Machine,
};
use super::{
    AgentSandbox, AppleNetwork, ExecCommand, ExecOutput, ExecRequest, Mode, ModeNotice, Probe,
    SessionKey, WorkspaceAccess,
};
use crate::{
    Mount, Notice, Profile, Pull, ResourceLimits, SandboxConfig, SandboxError,
    leftovers::OWNER,
    mount::{self, Handles, MountRules},
    owner::Owner,
    shield::Shield,
};

/// Runs the commands of one agent in virtual machines of Apple's `container`.
///
/// Dropped, its machines end, but nobody waits for it; [`Self::shutdown`] does.
pub struct AppleExecutor {
    shared: Arc<Shared>,
}

struct Shared {
    agent: AgentSandbox,
    config: SandboxConfig,
    owner: Owner,
    swept: OnceCell<()>,
    told: Once,
    sessions: Mutex<HashMap<SessionKey, Arc<Session>>>,
}

/// What is kept for one session.
#[derive(Debug, Default)]
struct Session {
    machine: tokio::sync::Mutex<Option<Arc<Machine>>>,
}

impl AppleExecutor {
    /// An executor for that agent. Nothing is started yet.
    #[must_use]
    pub fn new(agent: AgentSandbox, config: &SandboxConfig) -> Self {
        Self {
            shared: Arc::new(Shared {
                agent,
                config: config.clone(),
                owner: Owner::current(),
                swept: OnceCell::new(),
                told: Once::new(),
                sessions: Mutex::new(HashMap::new()),
            }),
        }
    }

    /// Runs a command to its end in the machine of its session, which is started if there is none, or if it
    /// is gone.
    ///
    /// When the command's time is up the machine is removed: the program has no way to end one command and
    /// everything it started.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Apple`] when no machine can be had that is as it must be, and
    /// [`SandboxError::SessionLost`] when it ends under the command.
    pub async fn exec(
        &self,
        key: &SessionKey,
        request: &ExecRequest,
    ) -> Result<ExecOutput, SandboxError> {
        let shared = &self.shared;
        if matches!(&request.command, ExecCommand::Argv(argv) if argv.is_empty()) {
            return Err(SandboxError::NoCommand);
        }
        let client = shared.client()?;
        let variables = shared.agent.env.iter().chain(&request.env);
        let env = arguments::environment(shared.agent.profile, variables)?;
        let workdir = shared.workdir(request)?;
        let marker = name::marker()?;
        let order = Order {
            marker: &marker,
            stdin: &request.stdin,
            output_limit: request.output_limit,
            timeout: request.timeout.or_else(|| shared.limits().timeout),
        };
        let mut again = true;
        loop {
            let lease = shared.lease(&client, key).await?;
            let exec = Exec {
                container: lease.machine.name(),
                workdir: &workdir,
                env: &env,
                input: match request.stdin.is_empty() {
                    true => Input::Closed,
                    false => Input::Open,
                },
                command: &request.command,
                marker: &marker,
            };
            let call = client.call("exec").args(exec.arguments());
            let call = exec
                .inherited()
                .fold(call, |call, (name, value)| call.env(name, value));
            let ran = order.run(call, lease.machine.name()).await?;
            match ran {
                Ran::Ended(output) => {
                    if output.exit_code != 0 && !lease.machine.is_up().await? {
                        return Err(SandboxError::SessionLost);
                    }
                    lease.finish();
                    return Ok(output);
                }
                Ran::TimedOut(output) => {
                    lease.machine.end().await?;
                    shared.notice(
                        &ModeNotice::SessionEnded {
                            key: key.clone(),
                            why: "a command's time was up, and with it end all that it had started",
                        }
                        .into(),
                    );
                    return Ok(output);
                }
                Ran::NotBegun { said } => {
                    let up = lease.machine.is_up().await?;
                    lease.finish();
                    if up || !again {
                        return Err(AppleError::NotBegun { said }.into());
                    }
                    again = false;
                }
            }
        }
    }

    /// Removes the machine of a session, and says whether there was one.
    pub async fn stop(&self, key: &SessionKey) -> bool {
        let session = self.shared.sessions().get(key).cloned();
        match session {
            Some(session) => self.shared.end(&session).await,
            None => false,
        }
    }

    /// Removes the machines of all sessions.
    pub async fn shutdown(&self) {
        let sessions: Vec<_> = self.shared.sessions().drain().collect();
        for (_, session) in sessions {
            self.shared.end(&session).await;
        }
    }

    /// Whether machines can be started, without starting one.
    pub async fn probe(&self) -> Probe {
        let (ok, message, hints) = match self.shared.look().await {
            Ok(message) => (true, message, Vec::new()),
            Err(error) => {
                let hints = error.hint().into_iter().collect();
                (false, error.to_string(), hints)
            }
        };
        Probe {
            ok,
            mode: Mode::AppleVm,
            message,
            hints,
        }
    }

    /// Fetches the agent's image, where it is not in the store; says whether it had to.
    ///
    /// # Errors
    ///
    /// When no image is configured, or it cannot be fetched.
    pub async fn pull(&self) -> Result<bool, SandboxError> {
        let client = self.shared.client()?;
        let image = self.shared.image()?;
        if client.has_image(image).await? {
            return Ok(false);
        }
        self.shared.pull(&client, image).await?;
        Ok(true)
    }

    /// Removes the containers of dead owners, and says how many there were. Those of living ones are never
    /// touched.
    ///
    /// # Errors
    ///
    /// When the program is missing, or does not say what there is.
    pub async fn sweep(&self) -> Result<usize, SandboxError> {
        let client = self.shared.client()?;
        Ok(self.shared.sweep(&client).await?)
    }
}

impl Shared {
    fn client(&self) -> Result<Client, AppleError> {
        Client::find(&self.agent.apple.program)
    }

    fn image(&self) -> Result<&str, AppleError> {
        let image = self.agent.image.as_deref();
        image.ok_or_else(|| AppleError::NoImage {
            agent: self.agent.agent.clone(),
        })
    }

    /// What can be known without starting anything.
    async fn look(&self) -> Result<String, AppleError> {
        let image = self.image()?;
        self.check_promises()?;
        let client = self.client()?;
        client.check().await?;
        if !client.has_image(image).await? {
            return Err(AppleError::NoSuchImage {
                image: image.to_owned(),
            });
        }
        Ok(match self.agent.apple.network {
            AppleNetwork::None => "Apple's container answers; machines have no network".to_owned(),
            AppleNetwork::Unrestricted => {
                "Apple's container answers; machines reach whatever the host reaches".to_owned()
            }
        })
    }

    /// Refuses what is configured and could not be held.
    fn check_promises(&self) -> Result<(), AppleError> {
        if let Some(runtime) = &self.agent.runtime {
            return Err(AppleError::Runtime {
                runtime: runtime.clone(),
            });
        }
        // Whoever wants no policy has to say so.
        if self.agent.allowlist.is_some() && self.agent.apple.network == AppleNetwork::None {
            return Err(AppleError::Allowlist {
                agent: self.agent.agent.clone(),
            });
        }
        Ok(())
    }

    /// The machine of a session, with one more command in it.
    async fn lease(
        self: &Arc<Self>,
        client: &Client,
        key: &SessionKey,
    ) -> Result<Lease, SandboxError> {
        let session = self.session(key);
        let mut held = session.machine.lock().await;
        if let Some(machine) = held.take() {
            if machine.is_kept() {
                *held = Some(Arc::clone(&machine));
                return Ok(Lease::new(machine));
            }
            machine.end().await?;
            self.notice(&Notice::SessionRestarted {
                agent: key.agent.clone(),
                session: key.session.clone(),
            });
        }
        let machine = Arc::new(self.start(client, key).await?);
        *held = Some(Arc::clone(&machine));
        if let Some(idle) = self.agent.idle {
            let shared = Arc::downgrade(self);
            let idler = Idler {
                shared,
                session: Arc::downgrade(&session),
                key: key.clone(),
                idle,
            };
            tokio::spawn(idler.watch(Arc::downgrade(&machine), machine.busy.subscribe()));
        }
        Ok(Lease::new(machine))
    }

    async fn start(&self, client: &Client, key: &SessionKey) -> Result<Machine, SandboxError> {
        let image = self.image()?;
        self.check_promises()?;
        client.check().await?;
        self.swept
            .get_or_try_init(|| async { self.sweep(client).await.map(drop) })
            .await?;
        if !client.has_image(image).await? {
            match self.config.pull {
                Pull::Missing => self.pull(client, image).await?,
                Pull::Never => {
                    let image = image.to_owned();
                    return Err(AppleError::NoSuchImage { image }.into());
                }
            }
        }
        let mut mounts = self.mounts()?;
        let workdir = self.home();
        let shield = Shield::over(&mounts, WORKSPACE)?;
        mounts.extend_from_slice(shield.mounts());
        let handles = Handles::open(&mounts)?;
        self.tell();
        let run = Run {
            name: &name::fresh(key)?,
            owner: &self.owner.to_string(),
            image,
            mounts: &mounts,
            workdir,
            limits: &self.limits(),
            profile: self.agent.profile,
            user: self.user(),
            network: self.agent.apple.network,
            marker: &name::marker()?,
        };
        let machine = Machine::start(client, &run, shield, self.config.start_limit.0).await?;
        match moved(&mounts, &handles) {
            None => Ok(machine),
            Some(path) => {
                machine.end().await?;
                Err(AppleError::Moved { path }.into())
            }
        }
    }

    /// The workspace and what else is shown, by their one true paths.
    fn mounts(&self) -> Result<Vec<Mount>, SandboxError> {
        let workspace = &self.agent.workspace;
        let mut mounts = match self.agent.workspace_access {
            WorkspaceAccess::None => Vec::new(),
            WorkspaceAccess::ReadOnly => vec![Mount::read_only(workspace, WORKSPACE)],
            WorkspaceAccess::ReadWrite => vec![Mount::read_write(workspace, WORKSPACE)],
        };
        mounts.extend_from_slice(&self.agent.mounts);
        let directories = &self.config.directories;
        let rules = MountRules {
            state: &[directories.runtime.clone(), directories.cache.clone()],
            roots: &self.config.allowed_roots,
        };
        Ok(mount::check_all(&mounts, &rules)?)
    }

    /// The limits that were asked for, and the profile's where none was.
    fn limits(&self) -> ResourceLimits {
        self.agent.profile.limits(&self.agent.limits)
    }

    /// Who everything runs as, where that is not the image's business.
    fn user(&self) -> Option<User> {
        match self.agent.profile {
            Profile::Standard => None,
            Profile::Strict => Some(User {
                uid: getuid().as_raw(),
                gid: getgid().as_raw(),
            }),
        }
    }

    /// Where commands start that do not say.
    fn home(&self) -> &'static str {
        match self.agent.workspace_access {
            WorkspaceAccess::None => "/",
            WorkspaceAccess::ReadOnly | WorkspaceAccess::ReadWrite => WORKSPACE,
        }
    }

    fn workdir(&self, request: &ExecRequest) -> Result<String, SandboxError> {
        match (&request.cwd, self.agent.workspace_access) {
            (None, _) => Ok(self.home().to_owned()),
            (Some(path), WorkspaceAccess::None) => Err(SandboxError::Cwd { path: path.clone() }),
            (Some(cwd), WorkspaceAccess::ReadOnly | WorkspaceAccess::ReadWrite) => {
                arguments::inside(&self.agent.workspace, cwd)
            }
        }
    }

    async fn pull(&self, client: &Client, image: &str) -> Result<(), AppleError> {
        self.notice(&Notice::Pulling {
            image: image.to_owned(),
        });
        client.pull(image).await
    }

    async fn sweep(&self, client: &Client) -> Result<usize, AppleError> {
        let mut removed = 0;
        for listed in client.list().await? {
            let owner = listed.label(OWNER).map(str::parse::<Owner>);
            let Some(Ok(owner)) = owner else { continue };
            if owner.is_alive() {
                continue;
            }
            match client.remove(listed.name()).await {
                Ok(()) => removed += 1,
                Err(error) => self.notice(&Notice::LeftoversKept {
                    what: error.to_string(),
                }),
            }
        }
        if removed > 0 {
            self.notice(&Notice::LeftoversRemoved { count: removed });
        }
        Ok(removed)
    }

    /// Removes a session's machine, and says whether there was one.
    async fn end(&self, session: &Session) -> bool {
        let Some(machine) = session.machine.lock().await.take() else {
            return false;
        };
        if let Err(error) = machine.end().await {
            self.notice(&Notice::LeftoversKept {
                what: error.to_string(),
            });
        }
        true
    }

    fn session(&self, key: &SessionKey) -> Arc<Session> {
        let mut sessions = self.sessions();
        // Those that nobody waits for and that have no machine are not worth keeping.
        sessions.retain(|_, session| {
            let empty = session.machine.try_lock().is_ok_and(|held| held.is_none());
            !empty || Arc::strong_count(session) > 1
        });
        Arc::clone(sessions.entry(key.clone()).or_default())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once what of the configuration will not hold.
    fn tell(&self) {
        self.told.call_once(|| {
            self.notice(&Notice::MountsUnverified);
            let limits = arguments::unheld(&self.limits(), self.user());
            if !limits.is_empty() {
                self.notice(
                    &ModeNotice::LimitsUnheld {
                        mode: Mode::AppleVm,
                        limits,
                    }
                    .into(),
                );
            }
            if self.agent.apple.network == AppleNetwork::Unrestricted {
                self.notice(&Notice::NetworkUnrestricted);
            }
        });
    }

    fn notice(&self, notice: &Notice) {
        tracing::info!("{notice}");
        if let Some(callback) = &self.config.on_notice {
            callback(notice);
        }
    }
}

/// The first path that leads elsewhere than it did when it was judged. The program takes paths and nothing
/// else, and what it made of them cannot be compared inside.
fn moved(mounts: &[Mount], handles: &Handles) -> Option<PathBuf> {
    let mut both = mounts.iter().zip(handles.mounted());
    let moved = both.find(|(mount, judged)| {
        fs::symlink_metadata(&mount.host_path).map_or(true, |now| {
            (now.dev(), now.ino()) != (judged.device, judged.inode)
        })
    });
    moved.map(|(mount, _)| mount.host_path.clone())
}

/// A command's hold on a machine. One that is dropped unfinished takes the machine with it, because what the
/// command started may still run.
#[derive(Debug)]
struct Lease {
    machine: Arc<Machine>,
    finished: bool,
}

impl Lease {
    fn new(machine: Arc<Machine>) -> Self {
        machine.busy.send_modify(|count| *count += 1);
        Self {
            machine,
            finished: false,
        }
    }

    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.machine.busy.send_modify(|count| *count -= 1);
        if self.finished {
            return;
        }
        self.machine.let_go();
        // It ends by itself, unless something inside holds on to it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let machine = Arc::clone(&self.machine);
            runtime.spawn(async move {
                if let Err(error) = machine.end().await {
                    tracing::warn!(%error, "a container is left");
                }
            });
        }
    }
}

/// Removes a machine that nobody has used for some time.
struct Idler {
    shared: Weak<Shared>,
    session: Weak<Session>,
    key: SessionKey,
    idle: Duration,
}

impl Idler {
    async fn watch(self, machine: Weak<Machine>, mut busy: watch::Receiver<usize>) {
        loop {
            if busy.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            match timeout(self.idle, busy.wait_for(|count| *count > 0)).await {
                Ok(Ok(_)) => continue,
                Ok(Err(_)) => return,
                Err(_) => {}
            }
            let (Some(shared), Some(session)) = (self.shared.upgrade(), self.session.upgrade())
            else {
                return;
            };
            // Commands take their hold under this lock.
            let mut held = session.machine.lock().await;
            if *busy.borrow() > 0 {
                continue;
            }
            let ours = |held: &Arc<Machine>| Weak::as_ptr(&machine) == Arc::as_ptr(held);
            let Some(machine) = held.take_if(|held| ours(held)) else {
                return;
            };
            if let Err(error) = machine.end().await {
                shared.notice(&Notice::LeftoversKept {
                    what: error.to_string(),
                });
            }
            shared.notice(
                &ModeNotice::SessionEnded {
                    key: self.key,
                    why: "nobody has used it for the time that is allowed",
                }
                .into(),
            );
            return;
        }
    }
}

impl fmt::Debug for AppleExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppleExecutor")
            .field("agent", &self.shared.agent.agent)
            .field("settings", &self.shared.agent.apple)
            .finish_non_exhaustive()
    }
}
