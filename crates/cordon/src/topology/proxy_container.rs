//! The proxy in a container of its own, with two legs: the run's network, on which there is nobody but
//! the workload and which has no way out, and the egress network.
//!
//! What the proxy needs goes in over its standard input, what it records comes out over its standard
//! output, and it ends with its input. Nothing of it is on a disk.

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use cordon_door::Far;

use cordon_engine::{
    Container, ContainerSpec, Engine, Kind, Limits, Network as EngineNetwork, NetworkSpec, Reach,
    Terminal, Volume,
    process::{self, Streams},
};
use cordon_proxy::{Answers, Document, Order, RELAY_PORT, Settings, Summary};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout},
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::timeout,
};

use super::{
    egress,
    far::{self, Files, Orders, Relay},
    image, setting, settings,
    subnet::Subnet,
    without_ipv6,
};
use crate::{
    Allowlist, CommandSpec, NetworkSandbox, SandboxError, leftovers::OWNER, place::Place,
    sandbox::Shared,
};

/// A proxy container that serves, and the network that it shares with one workload.
#[derive(Debug)]
pub(crate) struct ProxyContainer {
    remains: Remains,
    serving: Serving,
}

/// A proxy that serves.
#[derive(Debug)]
struct Serving {
    address: Ipv4Addr,
    serves: Serves,
    client: Child,
    orders: Orders,
    records: JoinHandle<Result<Summary, cordon_proxy::Error>>,
    words: JoinHandle<std::io::Result<String>>,
    elsewhere: Option<Elsewhere>,
}

/// What a proxy is there for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Serves {
    /// Requests, on ports 53, 80 and 443.
    Requests,
    /// The connection that keeps the workload's container, which has no other use for a network.
    Connection,
}

/// What there is besides where the engine is in another machine.
#[derive(Debug)]
struct Elsewhere {
    volume: Volume,
    relay: Relay,
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
            Ok(serving) => Ok(Self { remains, serving }),
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
    ) -> Result<Serving, SandboxError> {
        let engine = &remains.engine;
        let owner = shared.owner.to_string();
        let address = network(engine, &remains.network, &owner).await?;
        let token = match engine.facts().local {
            true => None,
            false => Some(far::token()?),
        };
        let (serves, settings, document) = match (settings(&shared.config, spec, address), &token) {
            (Some(settings), token) => {
                let line = Document::line(&settings, &*shared.authority()?, token.as_ref())?;
                (Serves::Requests, settings, line)
            }
            (None, Some(token)) => {
                let nothing = Settings::new(address, Allowlist::default());
                let line = Document::relay_line(address, token)?;
                (Serves::Connection, nothing, line)
            }
            (None, None) => return Err(SandboxError::NotStarted),
        };
        let container = container(engine, surroundings, remains, &owner, (serves, address));
        let running = async {
            engine.create(&container).await?;
            if serves == Serves::Requests {
                engine
                    .connect_network(&remains.network, &remains.container, address)
                    .await?;
            }
            let running = Running::attach(engine, &remains.container, &settings)?;
            running.ready(shared, engine, &container, &document).await
        };
        let files = async {
            let Some(token) = &token else {
                return Ok(None);
            };
            let files = Files {
                place: &remains.network,
                image: &surroundings.image,
                labels: container.labels.clone(),
                proxy: address,
                token,
            };
            files.put(shared, engine).await.map(Some)
        };
        // Both to their end: an engine may go on with what its client no longer waits for.
        let (running, volume) = tokio::join!(running, files);
        running?.serving(address, serves, volume?)
    }

    /// Where the workload finds it; `None` where it is served nothing.
    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        let serves = self.serving.serves == Serves::Requests;
        serves.then_some(self.serving.address)
    }

    /// Where PID 1 of the workload's container finds who passes its connection on, if that is needed.
    pub(super) fn relay_address(&self) -> Option<SocketAddr> {
        let address = (self.serving.address, RELAY_PORT);
        self.serving.elsewhere.as_ref().map(|_| address.into())
    }

    /// Where the files of the workload's container are, if the engine does not see those of this machine.
    pub(super) fn volume(&self) -> Option<&Volume> {
        let elsewhere = self.serving.elsewhere.as_ref();
        elsewhere.map(|elsewhere| &elsewhere.volume)
    }

    /// The end at which PID 1 of the workload's container will be heard, if it is not at a door.
    pub(super) fn far(&mut self) -> Option<Far> {
        self.serving.elsewhere.as_mut()?.relay.end()
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
            let line = order.line()?;
            drop(self.serving.orders.lock().await.write_all(&line).await);
        }
        Ok(())
    }

    /// Returns once the proxy has ended by itself.
    pub(super) async fn lost(&mut self) {
        drop(self.serving.client.wait().await);
        if let Some(elsewhere) = &self.serving.elsewhere {
            elsewhere.relay.cut();
        }
    }

    /// Ends the proxy and removes both its container and the network, which is empty by now.
    pub(super) async fn release(self) -> Result<Option<Summary>, SandboxError> {
        let Self { remains, serving } = self;
        let Serving {
            mut client,
            orders,
            records,
            words,
            elsewhere,
            serves,
            ..
        } = serving;
        if let Ok(stop) = Order::Stop.line() {
            // One that is gone needs no order.
            drop(orders.lock().await.write_all(&stop).await);
        }
        drop(elsewhere);
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
        let summary = summary?;
        Ok((serves == Serves::Requests).then_some(summary))
    }
}

/// A container whose client is attached.
struct Running {
    client: Child,
    orders: ChildStdin,
    answers: Answers<ChildStdout>,
    said: mpsc::Receiver<Vec<u8>>,
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
        let (sender, said) = mpsc::channel(far::SAID);
        Ok(Self {
            client,
            orders,
            answers: Answers::new(stdout, settings)?.relaying(sender),
            said,
            words,
        })
    }

    /// Tells it how to serve, and returns once it does.
    async fn ready(
        mut self,
        shared: &Shared,
        engine: &Engine,
        container: &ContainerSpec,
        document: &[u8],
    ) -> Result<Self, SandboxError> {
        let limit = shared.config.start_limit.0;
        let ready = async {
            // A program that is gone says why by its last words.
            let told = self.orders.write_all(document).await;
            Ok::<_, cordon_proxy::Error>(told.is_ok() && self.answers.ready().await?)
        };
        let ready = timeout(limit, ready).await;
        match ready {
            Ok(Ok(true)) => Ok(self),
            Ok(Ok(false)) => Err(self.refusal(engine, &container.image).await),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(SandboxError::ProxyNotReady {
                said: format!("nothing within {} s", limit.as_secs()),
            }),
        }
    }

    /// Takes its records from now on, and passes the workload's connection on where there is a volume.
    fn serving(
        self,
        address: Ipv4Addr,
        serves: Serves,
        volume: Option<Volume>,
    ) -> Result<Serving, SandboxError> {
        let orders = Arc::new(Mutex::new(self.orders));
        let elsewhere = match volume {
            None => None,
            Some(volume) => Some(Elsewhere {
                volume,
                relay: Relay::start(&orders, self.said)?,
            }),
        };
        Ok(Serving {
            address,
            serves,
            client: self.client,
            orders,
            records: tokio::spawn(self.answers.end()),
            words: self.words,
            elsewhere,
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

/// Removes a proxy container, then its network and its volume, which the workload may be leaving only now.
async fn remove(engine: &Engine, container: &Container, network: &str) -> Result<(), SandboxError> {
    engine.remove(container).await?;
    let mut tries = REMOVE_TRIES;
    loop {
        let removed = match engine.remove_network(network).await {
            Ok(()) => far::remove(engine, network).await,
            Err(error) => Err(error),
        };
        match removed {
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
    (serves, address): (Serves, Ipv4Addr),
) -> ContainerSpec {
    let mut sysctls = vec![
        setting("net.ipv4.ip_unprivileged_port_start", "0"),
        // A namespace begins with the host's value, and a host with containers forwards.
        setting("net.ipv4.ip_forward", "0"),
    ];
    if engine.kind() == Kind::Podman {
        sysctls.extend(FRESH_NEIGHBOURS.map(|(name, value)| setting(name, value)));
    }
    sysctls.extend(without_ipv6(engine));
    let enforced = engine.facts().limits;
    ContainerSpec {
        name: Some(remains.container.0.clone()),
        labels: vec![(OWNER.to_owned(), owner.to_owned())],
        entrypoint: Some(image::PROGRAM.to_owned()),
        user: Some(NOBODY.to_owned()),
        hostname: Some("cordon-proxy".to_owned()),
        network: match serves {
            Serves::Requests => EngineNetwork::Named {
                name: surroundings.egress.to_owned(),
                address: None,
            },
            Serves::Connection => EngineNetwork::Named {
                name: remains.network.clone(),
                address: Some(address.to_string()),
            },
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

/// Podman's bridge has the address of one of its containers' interfaces, and another one when that container
/// ends; whoever still sends to the old one reaches nobody for half a minute. So the proxy asks anew after half a
/// second, and everybody when nobody answers.
const FRESH_NEIGHBOURS: [(&str, &str); 5] = [
    ("net.ipv4.neigh.eth0.base_reachable_time_ms", "500"),
    ("net.ipv4.neigh.eth0.delay_first_probe_time", "0"),
    ("net.ipv4.neigh.eth0.retrans_time_ms", "100"),
    ("net.ipv4.neigh.eth0.ucast_solicit", "1"),
    ("net.ipv4.neigh.eth0.mcast_resolicit", "3"),
];
