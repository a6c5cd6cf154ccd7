//! A WebSocket that echoes: enough of RFC 6455 for short messages.

use data_encoding::BASE64;
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub(crate) fn accept(request: Request<Incoming>) -> Response<()> {
    let Some(key) = request.headers().get("sec-websocket-key") else {
        return Response::builder()
            .status(StatusCode::BAD_REQUEST)
            .body(())
            .unwrap();
    };
    let mut digest = Sha1::new();
    digest.update(key.as_bytes());
    digest.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let answer = BASE64.encode(&digest.finalize());
    tokio::spawn(async move {
        if let Ok(stream) = hyper::upgrade::on(request).await {
            drop(echo(TokioIo::new(stream)).await);
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("upgrade", "websocket")
        .header("connection", "upgrade")
        .header("sec-websocket-accept", answer)
        .body(())
        .unwrap()
}

async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).await?;
        let mut mask = [0; 4];
        let mut payload = vec![0; usize::from(head[1] & 0x7f)];
        stream.read_exact(&mut mask).await?;
        stream.read_exact(&mut payload).await?;
        for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
            *byte ^= mask;
        }
        stream.write_all(&[head[0], head[1] & 0x7f]).await?;
        stream.write_all(&payload).await?;
        stream.flush().await?;
        // It is the server that ends the connection once both have said goodbye.
        if head[0] & 0x0f == CLOSE {
            return stream.shutdown().await;
        }
    }
}

/// The kind of a frame that says goodbye.
const CLOSE: u8 = 8;
