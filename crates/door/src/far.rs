//! The host's side where the container runs in another machine: no socket can be handed over, and PID 1
//! is heard through somebody who passes its bytes on.

use std::{net::SocketAddr, time::Duration};

use tokio::{net::UnixStream, time::timeout};

use crate::{Error, Keeper, door};

/// A connection on which PID 1 of a container in another machine will be heard.
#[derive(Debug)]
pub struct Far(UnixStream);

impl Far {
    /// That connection, and the end of it for whoever passes on what is written and read there. When
    /// either end closes, the other must come to know.
    ///
    /// # Errors
    ///
    /// When the operating system has no sockets left.
    pub fn pair() -> Result<(Self, UnixStream), Error> {
        let (here, there) = UnixStream::pair().map_err(Error::Connection)?;
        Ok((Self(here), there))
    }

    /// What `cordon-init` is called with, where the other end is passed on at `address` to whoever brings
    /// the content of the file `token`.
    #[must_use]
    pub fn arguments(address: SocketAddr, token: &str) -> [String; 3] {
        ["far".to_owned(), address.to_string(), token.to_owned()]
    }

    /// Waits for PID 1; when the returned keeper is dropped, the container ends. It cannot be held: the
    /// pipes of its commands would have to come over.
    ///
    /// # Errors
    ///
    /// When nothing comes within `limit`, or what comes is not what `cordon-init` sends.
    pub async fn greeting(self, limit: Duration) -> Result<Keeper, Error> {
        match timeout(limit, door::greeted(&self.0)).await {
            Ok(Ok(_)) => Ok(Keeper::new(self.0)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::NotHandedOver { limit }),
        }
    }
}
