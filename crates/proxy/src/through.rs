//! A stream whose reads go through something, while its writes go straight on.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What the reads of a stream go through.
pub(crate) trait Reads<S> {
    /// Reads as [`AsyncRead::poll_read`] does, from the stream below.
    fn poll_read(
        &mut self,
        below: &mut S,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;
}

/// A stream, and what its reads go through.
#[derive(Debug)]
pub(crate) struct Through<S, R> {
    below: S,
    reads: R,
}

impl<S, R> Through<S, R> {
    pub(crate) fn new(below: S, reads: R) -> Self {
        Self { below, reads }
    }

    pub(crate) fn reads(&self) -> &R {
        &self.reads
    }
}

impl<S: AsyncRead + Unpin, R: Reads<S> + Unpin> AsyncRead for Through<S, R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.reads.poll_read(&mut this.below, cx, buf)
    }
}

impl<S: AsyncWrite + Unpin, R: Unpin> AsyncWrite for Through<S, R> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().below).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().below).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().below).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().below).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.below.is_write_vectored()
    }
}
