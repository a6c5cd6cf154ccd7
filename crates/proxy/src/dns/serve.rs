//! Serves DNS on the two sockets, within limits of rate, size, time and number.

use std::{
    net::Ipv4Addr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::answer;
use crate::{
    Limits,
    log::{Event, Log},
    tasks::Tasks,
};

/// What both transports share.
pub(crate) struct Responder {
    address: Ipv4Addr,
    log: Log,
    allowance: Mutex<Allowance>,
    limits: Limits,
    tasks: Tasks,
}

impl Responder {
    pub(crate) fn new(address: Ipv4Addr, log: Log, limits: Limits, tasks: Tasks) -> Self {
        let allowance = Mutex::new(Allowance::new(limits.dns_per_second));
        Self {
            address,
            log,
            allowance,
            limits,
            tasks,
        }
    }

    /// Answers and records one message, or drops it.
    fn respond(&self, message: &[u8]) -> Option<Vec<u8>> {
        let dropped = match self.lock().take(Instant::now()) {
            Taken::No => return None,
            Taken::Yes { dropped } => dropped,
        };
        if dropped > 0
            && let Some(slot) = self.log.try_reserve()
        {
            slot.fill(Event::DnsDropped { count: dropped });
        }
        let answer = answer(message, self.address)?;
        // Without a place in the log there is no answer: a question must leave a record.
        let Some(slot) = self.log.try_reserve() else {
            self.lock().dropped += 1;
            return None;
        };
        slot.fill(Event::Dns(answer.record));
        Some(answer.reply)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Allowance> {
        self.allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers datagrams until the task is dropped.
pub(crate) async fn serve_udp(socket: UdpSocket, responder: Arc<Responder>) {
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        match socket.recv_from(&mut buffer).await {
            Ok((length, peer)) => {
                if let Some(reply) = responder.respond(&buffer[..length]) {
                    // The client is gone or its queue is full; it asks again.
                    let _ = socket.send_to(&reply, peer).await;
                }
            }
            // The kernel reports a port that an earlier client closed; the socket itself is fine.
            Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
        }
    }
}

/// Answers connections until the task is dropped.
pub(crate) async fn serve_tcp(listener: TcpListener, responder: Arc<Responder>) {
    let places = Arc::new(Semaphore::new(responder.limits.dns_tcp_connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let serving = Arc::clone(&responder);
                responder.tasks.spawn(async move {
                    // Whatever went wrong, the client asks again.
                    let _ = serve_stream(stream, &serving).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ERROR_PAUSE).await,
        }
    }
}

async fn serve_stream(mut stream: TcpStream, responder: &Responder) -> std::io::Result<()> {
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        let length = timeout(responder.limits.dns_tcp_idle, async {
            let length = usize::from(stream.read_u16().await?);
            let Some(message) = buffer.get_mut(..length) else {
                return Err(std::io::ErrorKind::InvalidData.into());
            };
            stream.read_exact(message).await
        })
        .await??;
        let Some(reply) = responder.respond(&buffer[..length]) else {
            return Ok(());
        };
        let mut framed = Vec::with_capacity(reply.len() + 2);
        framed.extend(u16::try_from(reply.len()).unwrap_or(0).to_be_bytes());
        framed.extend(reply);
        timeout(responder.limits.dns_tcp_idle, stream.write_all(&framed)).await??;
    }
}

/// Questions that may still be answered; refilled as time passes.
struct Allowance {
    per_second: f64,
    left: f64,
    updated: Instant,
    dropped: u64,
}

enum Taken {
    Yes {
        /// Questions dropped since the last one that was answered.
        dropped: u64,
    },
    No,
}

impl Allowance {
    fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            left: per_second,
            updated: Instant::now(),
            dropped: 0,
        }
    }

    fn take(&mut self, now: Instant) -> Taken {
        let refill = now.duration_since(self.updated).as_secs_f64() * self.per_second;
        self.left = (self.left + refill).min(self.per_second);
        self.updated = now;
        if self.left < 1.0 {
            self.dropped += 1;
            return Taken::No;
        }
        self.left -= 1.0;
        Taken::Yes {
            dropped: std::mem::take(&mut self.dropped),
        }
    }
}

/// Longer than any question that a resolver sends.
const MAX_MESSAGE: usize = 4096;

/// A socket that fails at once must not spin.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_over_the_rate_are_dropped_and_counted() {
        let mut allowance = Allowance::new(10);
        let start = allowance.updated;
        let taken = (0..15)
            .filter(|_| matches!(allowance.take(start), Taken::Yes { .. }))
            .count();
        assert_eq!(taken, 10);
        let later = start + Duration::from_millis(200);
        assert!(matches!(allowance.take(later), Taken::Yes { dropped: 5 }));
        assert!(matches!(allowance.take(later), Taken::Yes { dropped: 0 }));
        assert!(matches!(allowance.take(later), Taken::No));
    }
}
