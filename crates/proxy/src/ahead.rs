//! Reads ahead of the TLS library, which asks the socket for four kibibytes at a time.
//!
//! A connection that gives as much as was asked for has more to give; from then on it is read in large pieces, until
//! it has nothing. The buffers go from connection to connection, so that one that rests holds none.

use std::{
    io, mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::TlsStream;
use tokio_util::io::poll_read_buf;

use crate::through::{Reads, Through};

/// A connection with TLS, of either side.
pub(crate) type Tls = Through<TlsStream<Socket>, Records>;

/// A connection below TLS.
pub(crate) type Socket = Through<TcpStream, ReadAhead>;

/// Takes several records at a time, where the TLS library gives one: what it can give without asking the socket is
/// taken along.
#[derive(Debug)]
pub(crate) struct Records;

impl Reads<TlsStream<Socket>> for Records {
    fn poll_read(
        &mut self,
        below: &mut TlsStream<Socket>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *below).poll_read(cx, buf))?;
        while buf.remaining() > 0 && below.get_ref().0.reads().has_record() {
            let room = buf.remaining();
            // The end, or a failure, is told again to whoever asks again.
            let read = Pin::new(&mut *below).poll_read(cx, buf);
            if buf.remaining() == room || !matches!(read, Poll::Ready(Ok(()))) {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What was read and not asked for yet.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    buffers: Buffers,
    buffer: BytesMut,
    /// Whether the connection is likely to have more than it is asked for.
    flows: bool,
}

impl ReadAhead {
    pub(crate) fn new(buffers: &Buffers) -> Self {
        Self {
            buffers: buffers.clone(),
            buffer: BytesMut::new(),
            flows: false,
        }
    }

    /// Whether the next record of TLS can be had without asking the connection, however long it is.
    fn has_record(&self) -> bool {
        self.buffer.len() > RECORD
    }

    fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() == 0 {
            self.buffer = self.buffers.take();
        }
        self.buffer.reserve(BUFFER);
        let read = poll_read_buf(Pin::new(below), cx, &mut self.buffer);
        if !matches!(read, Poll::Ready(Ok(1..))) {
            self.flows = false;
            self.buffers.give_back(mem::take(&mut self.buffer));
        }
        read
    }
}

impl<S: AsyncRead + Unpin> Reads<S> for ReadAhead {
    fn poll_read(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() && !self.flows {
            ready!(Pin::new(below).poll_read(cx, buf))?;
            self.flows = buf.remaining() == 0;
            return Poll::Ready(Ok(()));
        }
        if self.buffer.is_empty() {
            ready!(self.poll_fill(below, cx))?;
        }
        let length = self.buffer.len().min(buf.remaining());
        buf.put_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.buffers.give_back(mem::take(&mut self.buffer));
    }
}

/// Buffers that nobody uses at the moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<BytesMut>>>);

impl Buffers {
    fn take(&self) -> BytesMut {
        self.spare().pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: BytesMut) {
        if buffer.capacity() == 0 {
            return;
        }
        buffer.clear();
        let mut spare = self.spare();
        if spare.len() < SPARE {
            spare.push(buffer);
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<BytesMut>> {
        // No code panics while it holds the lock, and a list of buffers is never half-made.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A few records of TLS, and what the kernel holds ready for a connection that flows.
const BUFFER: usize = 64 * 1024;

/// The longest record of TLS, with what it is wrapped in.
const RECORD: usize = 16 * 1024 + 2048 + 5;

/// Buffers that wait for use; more are given back to the system.
const SPARE: usize = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::timeout,
    };

    use super::*;

    #[tokio::test]
    async fn every_byte_comes_through_and_a_connection_that_rests_holds_no_buffer() {
        let buffers = Buffers::default();
        let (mut far, near) = duplex(4 * BUFFER);
        let mut stream = Through::new(near, ReadAhead::new(&buffers));
        let sent: Vec<u8> = (0..=250).cycle().take(1_000_000).collect();
        let copy = sent.clone();
        let writing = tokio::spawn(async move {
            for piece in copy.chunks(70_001) {
                far.write_all(piece).await.unwrap();
            }
            far
        });
        let (mut got, mut piece) = (Vec::<u8>::new(), [0; 4096]);
        while got.len() < sent.len() {
            let length = stream.read(&mut piece).await.unwrap();
            got.extend(&piece[..length]);
        }
        assert!(got == sent);
        let far = writing.await.unwrap();
        let more = timeout(Duration::from_millis(20), stream.read(&mut piece)).await;
        assert!(more.is_err());
        assert_eq!(stream.reads().buffer.capacity(), 0);
        assert_eq!(buffers.spare().len(), 1);
        drop(far);
        assert_eq!(stream.read(&mut piece).await.unwrap(), 0);
    }
}
