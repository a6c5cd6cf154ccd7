//! A registry on loopback that has one image, as a podman of this machine has it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use tempfile::TempDir;

/// A registry that serves as long as the test runs.
pub(super) struct Registry {
    address: String,
}

impl Registry {
    pub(super) fn with(image: &str) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let saved = Command::new("podman")
            .args(["save", "--format", "docker-dir", "--compress", "--output"])
            .arg(directory.path().join("image"))
            .arg(image)
            .output()
            .unwrap();
        assert!(saved.status.success(), "{saved:?}");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let directory = Arc::clone(&directory);
                thread::spawn(move || serve(stream, &directory));
            }
        });
        Self { address }
    }

    /// What its one image is called.
    pub(super) fn image(&self) -> String {
        format!("{}/cordon/fetched:1", self.address)
    }
}

/// Answers one request of a connection: that there is a registry, the manifest, or a blob.
fn serve(mut stream: TcpStream, directory: &TempDir) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else {
        return;
    };
    for line in lines.map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
    }
    let mut words = request.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (kind, content) = match find(directory.path(), path) {
        Some((kind, file)) => (kind, fs::read(file).unwrap()),
        None => ("application/json", b"{}".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nDocker-Distribution-Api-Version: registry/2.0\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    drop(stream.write_all(head.as_bytes()));
    if method == "GET" {
        drop(stream.write_all(&content));
    }
}

fn find(directory: &Path, path: &str) -> Option<(&'static str, PathBuf)> {
    let image = directory.join("image");
    if path.contains("/manifests/") {
        return Some((MANIFEST, image.join("manifest.json")));
    }
    let (_, digest) = path.split_once("/blobs/sha256:")?;
    Some(("application/octet-stream", image.join(digest)))
}

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
