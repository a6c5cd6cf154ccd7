//! A running proxy: four sockets, served until it is stopped.

use std::{fmt, io, sync::Arc};

use arc_swap::ArcSwap;
use cordon_policy::Allowlist;
use cordon_secrets::SecretReplacements;
use tokio::{
    net::{TcpListener, UdpSocket},
    sync::Semaphore,
};

use crate::{
    CertificateAuthority, Error, Settings, Sockets, Summary, accept,
    ahead::Buffers,
    credentials::{Credentials, Secrets},
    dns::{self, Responder},
    log::{Event, Log, Writer},
    memory,
    serve::Shared,
    tasks::Tasks,
    tls,
    upstream::Upstreams,
};

/// Serves the sockets of one sandbox. Dropping it ends everything at once; [`Proxy::stop`] also waits
/// for the log to be written.
pub struct Proxy {
    shared: Option<Arc<Shared>>,
    tasks: Tasks,
    writer: Option<Writer>,
}

impl Proxy {
    /// Begins to serve. Needs a Tokio runtime.
    pub async fn start(
        sockets: Sockets,
        settings: Settings,
        authority: Arc<CertificateAuthority>,
    ) -> Result<Self, Error> {
        let Settings {
            address,
            allowlist,
            replacements,
            upstream,
            limits,
            log: target,
            on_record,
        } = settings;
        memory::keep_freed();
        let secrets = Secrets::new(replacements);
        let tasks = Tasks::default();
        let buffers = Buffers::default();
        let http = tcp("HTTP", sockets.http)?;
        let https = tcp("HTTPS", sockets.https)?;
        let dns_tcp = tcp("DNS over TCP", sockets.dns_tcp)?;
        let dns_udp = udp(sockets.dns_udp)?;
        let tls = tls::config(authority, address, limits.leaves)?;
        let upstreams = Upstreams::new(upstream.clone(), &limits, tasks.clone(), buffers.clone())?;

        let (log, records) = Log::new(limits.requests);
        let writer = Writer::start(
            &target,
            limits.log_bytes,
            on_record,
            secrets.clone(),
            records,
        )?;
        if let Some(slot) = log.reserve().await {
            slot.fill(Event::Start);
        }
        let responder = Arc::new(Responder::new(
            address,
            log.clone(),
            limits.clone(),
            tasks.clone(),
        ));
        let places = Arc::new(Semaphore::new(limits.connections));
        let shared = Arc::new(Shared {
            allowlist: ArcSwap::from_pointee(allowlist),
            credentials: Credentials::new(secrets.clone(), &limits),
            secrets,
            upstreams,
            upstream,
            inspections: Arc::new(Semaphore::new(limits.inspected_bodies)),
            limits,
            log,
            tasks: tasks.clone(),
            buffers,
        });
        tasks.spawn(dns::serve_udp(dns_udp, Arc::clone(&responder)));
        tasks.spawn(dns::serve_tcp(dns_tcp, responder));
        for listener in [http, https] {
            let (shared, tls, places) = (Arc::clone(&shared), tls.clone(), Arc::clone(&places));
            tasks.spawn(accept::serve(listener, shared, tls, places));
        }
        Ok(Self {
            shared: Some(shared),
            tasks,
            writer: Some(writer),
        })
    }

    /// Judges every request from now on by another allowlist. Requests under way are not touched.
    pub fn replace_allowlist(&self, allowlist: Allowlist) {
        if let Some(shared) = &self.shared {
            shared.allowlist.store(Arc::new(allowlist));
        }
    }

    /// Handles every request from now on with other secrets, such as the same with a fresh value.
    pub fn replace_secrets(&self, replacements: SecretReplacements) {
        if let Some(shared) = &self.shared {
            shared.secrets.replace(replacements);
        }
    }

    /// Cuts every connection and waits until the last record is written.
    pub async fn stop(mut self) -> Summary {
        self.tasks.cancel();
        self.tasks.ended().await;
        // The writer ends when the last sender is gone.
        self.shared = None;
        match self.writer.take() {
            Some(writer) => writer.finish().await,
            None => Summary::default(),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

fn tcp(which: &'static str, listener: std::net::TcpListener) -> Result<TcpListener, Error> {
    let take = || -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    take().map_err(|source| Error::Socket { which, source })
}

fn udp(socket: std::net::UdpSocket) -> Result<UdpSocket, Error> {
    let take = || -> io::Result<UdpSocket> {
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket)
    };
    take().map_err(|source| Error::Socket {
        which: "DNS over UDP",
        source,
    })
}
