//! The network by which all proxies of an engine reach the world.
//!
//! It is shared and stays: making one takes an engine longer than all the rest, and on it proxies listen
//! nowhere.

use cordon_engine::{Engine, Error, NetworkSpec, Reach};

/// Sees that it is there, and says its name.
pub(super) async fn ensure(engine: &Engine) -> Result<&'static str, Error> {
    if engine.has_network(NAME).await? {
        return Ok(NAME);
    }
    let spec = NetworkSpec {
        name: NAME.to_owned(),
        labels: vec![("cordon.egress".to_owned(), "1".to_owned())],
        reach: Reach::World,
        subnet: None,
    };
    match engine.create_network(&spec).await {
        Ok(()) => Ok(NAME),
        // Somebody else was faster.
        Err(Error::NetworkTaken { .. }) if engine.has_network(NAME).await? => Ok(NAME),
        Err(error) => Err(error),
    }
}

const NAME: &str = "cordon-egress";
