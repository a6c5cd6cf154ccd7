//! A place where somebody else's program answers.

use std::{
    io::{BufRead, BufReader},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::place::Place;

/// A running program that serves TLS at an address of its own; it ends when this is dropped.
#[derive(Debug)]
pub struct Program {
    place: Place,
    child: Child,
}

/// What the program needs to know.
#[derive(Debug)]
pub struct Post<'a> {
    /// Where it is to listen, at port 443.
    pub address: Ipv4Addr,
    /// Its certificate, as PEM.
    pub certificate: &'a Path,
    /// The certificate's key, as PEM.
    pub key: &'a Path,
}

impl Program {
    /// Starts one with certificates for the given names, and waits for its first line of output, with
    /// which it says that it is ready.
    pub fn start(names: &[&str], command: impl FnOnce(&Post<'_>) -> Command) -> Self {
        Self::serve(Place::new(names).0, command)
    }

    /// The same at an address of the machine that is not loopback, for those who come from a network.
    pub fn start_at(
        address: Ipv4Addr,
        names: &[&str],
        command: impl FnOnce(&Post<'_>) -> Command,
    ) -> Self {
        Self::serve(Place::at(address, names).0, command)
    }

    fn serve(place: Place, command: impl FnOnce(&Post<'_>) -> Command) -> Self {
        let mut command = command(&Post {
            address: place.address,
            certificate: &place.certificate(),
            key: &place.key(),
        });
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut ready).unwrap();
        assert!(!ready.is_empty(), "{command:?} did not start");
        Self { place, child }
    }

    /// Its address; its name server is at port 53 of it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.place.address
    }

    /// The certificate authority that its certificate comes from, as a file that anybody may read.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.place.authority()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
