//! The proxy in a container of its own, with two legs: the run's network, on which there is nobody but
//! the workload and which has no way out, and the egress network.
//!
//! What the proxy needs goes in over its standard input, what it records comes out over its standard
//! output, and it ends with its input. Nothing of it is on a disk.

use std::{net::Ipv4Addr, process::Stdio, time::Duration};

use cordon_engine::{
    Container, ContainerSpec, Engine, Limits, Network as EngineNetwork, NetworkSpec, Reach,
    Terminal,
    process::{self, Streams},
};
use cordon_proxy::{Answers, Document, Order, Settings, Summary};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout},
    task::JoinHandle,
    time::timeout,
};

use super::{egress, image, setting, settings, subnet::Subnet, without_ipv6};
use crate::{
    CommandSpec, NetworkSandbox, SandboxError, leftovers::OWNER, place::Place, sandbox::Shared,
};

/// A proxy container that serves, and the network that it shares with one workload.
#[derive(Debug)]
pub(crate) struct ProxyContainer {
    remains: Remains,
    address: Ipv4Addr,
    client: Child,
    orders: ChildStdin,
    records: JoinHandle<Result<Summary, cordon_proxy::Error>>,
    words: JoinHandle<std::io::Result<String>>,
}

/// What every proxy container of a sandbox needs.
#[derive(Debug)]
pub(crate) struct Surroundings {
    image: String,
    egress: &'static str,
}

impl Surroundings {
    pub(crate) async fn ensure(shared: &Shared, engine: &Engine) -> Result<Self, SandboxError> {
        Ok(Self {
            image: image::ensure(engine, &shared.config).await?,
            egress: egress::ensure(engine).await?,
        })
    }
}

/// The name of a run's network; its container has the same one.
pub(crate) fn network_of(place: &str) -> &str {
    place
}

/// The name of a run's proxy container.
pub(crate) fn container_of(place: &str) -> Container {
    Container(format!("{place}-proxy"))
}

impl ProxyContainer {
    /// Makes the network and the container, and returns once the proxy serves.
    pub(super) async fn start(
        shared: &Shared,
        engine: &Engine,
        spec: &CommandSpec,
        place: &Place,
    ) -> Result<Self, SandboxError> {
        let surroundings = shared.proxy_surroundings(engine).await?;
        place.mark_network()?;
        let remains = Remains::new(engine, place);
        match Self::make(shared, surroundings, spec, &remains).await {
            Ok((address, running)) => Ok(Self {
                remains,
                address,
                client: running.client,
                orders: running.orders,
                records: tokio::spawn(running.answers.end()),
                words: running.words,
            }),
            Err(error) => {
                // Why it could not be made matters more than what could not be removed; the next start
                // finds that.
                drop(remains.remove().await);
                Err(error)
            }
        }
    }

    async fn make(
        shared: &Shared,
        surroundings: &Surroundings,
        spec: &CommandSpec,
        remains: &Remains,
    ) -> Result<(Ipv4Addr, Running), SandboxError> {
        let engine = &remains.engine;
        let address = network(engine, &remains.network, &shared.owner.to_string()).await?;
        let settings = settings(&shared.config, spec, address).ok_or(SandboxError::NotStarted)?;
        let document = Document::line(&settings, &*shared.authority()?)?;
        let container = container(engine, surroundings, remains, &shared.owner.to_string());
        engine.create(&container).await?;
        engine
            .connect_network(&remains.network, &remains.container, address)
            .await?;
        let mut running = Running::attach(engine, &remains.container, &settings)?;
        let limit = shared.config.start_limit.0;
        let ready = async {
            // A program that is gone says why by its last words.
            let told = running.orders.write_all(&document).await;
            Ok::<_, cordon_proxy::Error>(told.is_ok() && running.answers.ready().await?)
        };
        let ready = timeout(limit, ready).await;
        match ready {
            Ok(Ok(true)) => Ok((address, running)),
            Ok(Ok(false)) => Err(running.refusal(engine, &surroundings.image).await),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(SandboxError::ProxyNotReady {
                said: format!("nothing within {} s", limit.as_secs()),
            }),
        }
    }

    /// Where the workload finds it.
    pub(super) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The network that the workload is to be on.
    pub(super) fn network(&self) -> &str {
        &self.remains.network
    }

    /// Tells the proxy another policy.
    pub(super) async fn replace(&mut self, network: &NetworkSandbox) -> Result<(), SandboxError> {
        let orders = [
            Order::Allowlist(network.allowlist.clone()),
            Order::Secrets(network.replacements.clone()),
        ];
        for order in orders {
            // One that is gone will be noticed as such.
            drop(self.orders.write_all(&order.line()?).await);
        }
        Ok(())
    }

    /// Returns once the proxy has ended by itself.
    pub(super) async fn lost(&mut self) {
        drop(self.client.wait().await);
    }

    /// Ends the proxy and removes both its container and the network, which is empty by now.
    pub(super) async fn release(self) -> Result<Summary, SandboxError> {
        let Self {
            remains,
            mut client,
            mut orders,
            records,
            words,
            ..
        } = self;
        if let Ok(stop) = Order::Stop.line() {
            // One that is gone needs no order.
            drop(orders.write_all(&stop).await);
        }
        drop(orders);
        let summary = match timeout(DRAIN, records).await {
            Ok(Ok(summary)) => summary.map_err(SandboxError::from),
            Ok(Err(_)) | Err(_) => Err(SandboxError::ProxyLost {
                said: "it did not end".to_owned(),
            }),
        };
        drop(timeout(DRAIN, client.wait()).await);
        words.abort();
        drop(client.start_kill());
        remains.remove().await?;
        summary
    }
}

/// A container whose client is attached.
struct Running {
    client: Child,
    orders: ChildStdin,
    answers: Answers<ChildStdout>,
    words: JoinHandle<std::io::Result<String>>,
}

impl Running {
    fn attach(
        engine: &Engine,
        container: &Container,
        settings: &Settings,
    ) -> Result<Self, SandboxError> {
        let streams = Streams {
            stdin: Stdio::piped(),
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
        };
        let mut client = engine.attach(container, streams)?;
        let words = tokio::spawn(process::tail(client.stderr.take(), WORDS_MAX));
        let (Some(orders), Some(stdout)) = (client.stdin.take(), client.stdout.take()) else {
            return Err(SandboxError::ProxyNotReady {
                said: String::new(),
            });
        };
        Ok(Self {
            client,
            orders,
            answers: Answers::new(stdout, settings)?,
            words,
        })
    }

    /// Why it ended before it served: the engine's refusal, or the program's own words.
    async fn refusal(self, engine: &Engine, image: &str) -> SandboxError {
        let Self {
            mut client, words, ..
        } = self;
        let said = match timeout(WORDS_TIME, words).await {
            Ok(Ok(Ok(said))) => said,
            _ => String::new(),
        };
        match timeout(WORDS_TIME, client.wait()).await {
            Ok(Ok(status))
                if !said.contains(OWN_WORDS) && !status.success() && !said.is_empty() =>
            {
                engine.refusal(image, status, &said).into()
            }
            _ => SandboxError::ProxyNotReady {
                said: said.trim().to_owned(),
            },
        }
    }
}

/// What a run leaves in the engine unless it is removed.
#[derive(Debug)]
struct Remains {
    engine: Engine,
    container: Container,
    network: String,
    armed: bool,
}

impl Remains {
    fn new(engine: &Engine, place: &Place) -> Self {
        Self {
            engine: engine.clone(),
            container: container_of(place.name()),
            network: network_of(place.name()).to_owned(),
            armed: true,
        }
    }

    async fn remove(mut self) -> Result<(), SandboxError> {
        self.armed = false;
        remove(&self.engine, &self.container, &self.network).await
    }
}

impl Drop for Remains {
    /// The run was dropped on its way. Its containers end by themselves; the network must be removed.
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The next start finds it, and its owner dead.
            return;
        };
        let (engine, container) = (self.engine.clone(), self.container.clone());
        let network = std::mem::take(&mut self.network);
        runtime.spawn(async move {
            if let Err(error) = remove(&engine, &container, &network).await {
                tracing::warn!(%error, "a network is left");
            }
        });
    }
}

/// Removes whatever there is of a run's proxy container and network.
pub(super) async fn remove_all(engine: &Engine, place: &Place) -> Result<(), SandboxError> {
    let container = container_of(place.name());
    remove(engine, &container, network_of(place.name())).await
}

/// Removes a proxy container, then its network, which the workload may be leaving only now.
async fn remove(engine: &Engine, container: &Container, network: &str) -> Result<(), SandboxError> {
    engine.remove(container).await?;
    let mut tries = REMOVE_TRIES;
    loop {
        match engine.remove_network(network).await {
            Ok(()) => return Ok(()),
            Err(_) if tries > 0 => tries -= 1,
            Err(error) => return Err(error.into()),
        }
        tokio::time::sleep(REMOVE_PAUSE).await;
    }
}

/// Makes the run's own network, and says where the proxy is to be on it.
async fn network(engine: &Engine, name: &str, owner: &str) -> Result<Ipv4Addr, SandboxError> {
    let mut tries = SUBNET_TRIES;
    loop {
        let subnet = Subnet::random()?;
        let spec = NetworkSpec {
            name: name.to_owned(),
            labels: vec![(OWNER.to_owned(), owner.to_owned())],
            reach: Reach::Sealed,
            subnet: Some(subnet.to_string()),
        };
        match engine.create_network(&spec).await {
            Ok(()) => return Ok(subnet.proxy()),
            Err(cordon_engine::Error::NetworkTaken { .. }) if tries > 0 => tries -= 1,
            Err(error) => return Err(error.into()),
        }
    }
}

fn container(
    engine: &Engine,
    surroundings: &Surroundings,
    remains: &Remains,
    owner: &str,
) -> ContainerSpec {
    let mut sysctls = vec![
        setting("net.ipv4.ip_unprivileged_port_start", "0"),
        // A namespace begins with the host's value, and a host with containers forwards.
        setting("net.ipv4.ip_forward", "0"),
    ];
    sysctls.extend(without_ipv6(engine));
    let enforced = engine.facts().limits;
    ContainerSpec {
        name: Some(remains.container.0.clone()),
        labels: vec![(OWNER.to_owned(), owner.to_owned())],
        entrypoint: Some(image::PROGRAM.to_owned()),
        user: Some(NOBODY.to_owned()),
        hostname: Some("cordon-proxy".to_owned()),
        network: EngineNetwork::Named {
            name: surroundings.egress.to_owned(),
            address: None,
        },
        sysctls,
        capabilities: Some(Vec::new()),
        security: vec!["no-new-privileges".to_owned()],
        read_only: true,
        limits: Limits {
            memory: enforced.then_some(MEMORY),
            pids: enforced.then_some(PIDS),
            rlimits: engine.facts().rlimits(),
            ..Limits::default()
        },
        terminal: Terminal::Input,
        remove: true,
        no_log: true,
        ..ContainerSpec::new(&surroundings.image)
    }
}

/// A user and a group that own nothing.
const NOBODY: &str = "65534:65534";

/// Far above what the proxy's own limits let a workload make it hold.
const MEMORY: u64 = 512 << 20;

/// Threads: one for each core, a few for the log and for what blocks.
const PIDS: u32 = 1024;

/// How long the proxy may take to print its last records, and its client to leave.
const DRAIN: Duration = Duration::from_secs(10);

/// What the program begins its own errors with.
const OWN_WORDS: &str = "cordon-proxy:";

const WORDS_MAX: usize = 8 << 10;

const WORDS_TIME: Duration = Duration::from_secs(2);

const SUBNET_TRIES: u32 = 16;

const REMOVE_TRIES: u32 = 25;

const REMOVE_PAUSE: Duration = Duration::from_millis(200);
