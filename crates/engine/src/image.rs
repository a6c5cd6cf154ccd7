//! Images: what is there, and how to get more.

use std::{path::Path, process::Stdio, time::Duration};

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use crate::{Engine, Error, process::Streams};

/// An image in the engine's store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// When it was made, as the engine writes it.
    pub created: String,
    /// Its names.
    pub tags: Vec<String>,
}

impl Engine {
    /// An image by its reference; `None` when it is not in the store.
    ///
    /// # Errors
    ///
    /// When the engine refuses, or answers something that cannot be read.
    pub async fn image(&self, reference: &str) -> Result<Option<Image>, Error> {
        let call = self.call(&["image", "inspect"]).args([reference]);
        let verb = call.verb().to_owned();
        let output = match call.success(b"").await {
            Ok(output) => output,
            Err(Error::Rejected { status, stderr, .. }) => {
                return match self.refusal(reference, status, &stderr) {
                    Error::NoSuchImage { .. } => Ok(None),
                    other => Err(other),
                };
            }
            Err(error) => return Err(error),
        };
        // A list, in which one reference has one place.
        let [found]: [Inspected; 1] = serde_json::from_slice(&output.stdout)
            .map_err(|source| Error::Unreadable { verb, source })?;
        Ok(Some(Image {
            id: found.id,
            created: found.created,
            tags: found.repo_tags.unwrap_or_default(),
        }))
    }

    /// The references of all images whose name matches `pattern`, in the engine's own sense.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn images(&self, pattern: &str) -> Result<Vec<String>, Error> {
        let filter = format!("reference={pattern}");
        let options = ["--filter", &filter, "--format", "{{.Repository}}:{{.Tag}}"];
        self.listing(&["images"], &options).await
    }

    /// Removes an image.
    ///
    /// # Errors
    ///
    /// When there is no such image, or it is in use.
    pub async fn remove_image(&self, reference: &str) -> Result<(), Error> {
        self.call(&["rmi"]).args([reference]).success(b"").await?;
        Ok(())
    }

    /// Removes the layers that no image uses.
    ///
    /// # Errors
    ///
    /// When the engine refuses.
    pub async fn prune_images(&self) -> Result<(), Error> {
        self.call(&["image", "prune"])
            .args(["--force"])
            .success(b"")
            .await?;
        Ok(())
    }

    /// Fetches an image from its registry.
    ///
    /// # Errors
    ///
    /// When it cannot be fetched.
    pub async fn pull(&self, reference: &str, on_line: impl FnMut(&str)) -> Result<(), Error> {
        let call = self.call(&["pull"]).args([reference]).limit(PULL_LIMIT);
        match self.streamed(call, Input::None, PULL_LIMIT, on_line).await {
            Err(Error::Rejected { stderr, .. }) => Err(Error::PullFailed {
                kind: self.kind(),
                image: reference.to_owned(),
                stderr,
            }),
            other => other,
        }
    }

    /// Writes images to an archive.
    ///
    /// # Errors
    ///
    /// When there is no such image, or the file cannot be written.
    pub async fn save(&self, references: &[&str], archive: &Path) -> Result<(), Error> {
        let call = self
            .call(&["save"])
            .args(["--output".as_ref(), archive.as_os_str()]);
        call.args(references)
            .limit(ARCHIVE_LIMIT)
            .success(b"")
            .await?;
        Ok(())
    }

    /// Reads images from an archive.
    ///
    /// # Errors
    ///
    /// When the file is not there, or is no archive of images.
    pub async fn load(&self, archive: &Path) -> Result<(), Error> {
        let call = self
            .call(&["load"])
            .args(["--input".as_ref(), archive.as_os_str()]);
        call.limit(ARCHIVE_LIMIT).success(b"").await?;
        Ok(())
    }

    /// Makes an image of one layer from a tar of its files.
    ///
    /// # Errors
    ///
    /// When the file is not there, or is no tar.
    pub async fn import(&self, archive: &Path, reference: &str) -> Result<(), Error> {
        let call = self
            .call(&["import"])
            .args([archive.as_os_str(), reference.as_ref()]);
        call.limit(ARCHIVE_LIMIT).success(b"").await?;
        Ok(())
    }

    /// Runs a call to its end, line by line; the end of the output is what an error shows.
    pub(crate) async fn streamed(
        &self,
        call: crate::process::Call,
        input: Input,
        limit: Duration,
        mut on_line: impl FnMut(&str),
    ) -> Result<(), Error> {
        let verb = call.verb().to_owned();
        let mut child = call.spawn(Streams {
            stdin: match input {
                Input::None => Stdio::null(),
                Input::Open => Stdio::piped(),
            },
            stdout: Stdio::piped(),
            stderr: Stdio::piped(),
        })?;
        let _open = child.stdin.take();
        let mut tail = Tail::default();
        let (mut out, mut err) = (lines(child.stdout.take()), lines(child.stderr.take()));
        let run = async {
            loop {
                let line = tokio::select! {
                    Some(line) = next(&mut out) => line,
                    Some(line) = next(&mut err) => line,
                    else => return child.wait().await,
                };
                on_line(&line);
                tail.push(line);
            }
        };
        match tokio::time::timeout(limit, run).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(Error::Rejected {
                verb,
                status,
                stderr: tail.text(),
            }),
            Ok(Err(source)) => Err(Error::Lost { verb, source }),
            Err(_) => {
                drop(child.start_kill());
                Err(Error::TimedOut { verb, limit })
            }
        }
    }
}

/// The standard input of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    /// It ends at once.
    None,
    /// Nothing comes over it, and it ends when nobody waits for the call any more.
    Open,
}

/// The last lines of an output.
#[derive(Default)]
struct Tail(std::collections::VecDeque<String>);

impl Tail {
    fn push(&mut self, line: String) {
        if self.0.len() == TAIL_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    fn text(self) -> String {
        Vec::from(self.0).join("\n")
    }
}

type Lines<R> = Option<BufReader<R>>;

fn lines<R: AsyncRead + Unpin>(stream: Option<R>) -> Lines<R> {
    stream.map(BufReader::new)
}

/// The next line, cut where it is longer than anybody reads; `None` for good once the stream ended.
async fn next<R: AsyncRead + Unpin>(lines: &mut Lines<R>) -> Option<String> {
    let reader = lines.as_mut()?;
    let mut line = Vec::new();
    loop {
        let chunk = match reader.fill_buf().await {
            Ok(chunk) if !chunk.is_empty() => chunk,
            _ => {
                *lines = None;
                return (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned());
            }
        };
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let size = end.unwrap_or(chunk.len());
        line.extend_from_slice(&chunk[..size.min(LINE_MAX.saturating_sub(line.len()))]);
        reader.consume(end.map_or(size, |end| end + 1));
        if end.is_some() {
            return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }
}

const PULL_LIMIT: Duration = Duration::from_secs(30 * 60);

const ARCHIVE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What a person reads of a failed build.
const TAIL_LINES: usize = 40;

const LINE_MAX: usize = 4 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Inspected {
    id: String,
    created: String,
    repo_tags: Option<Vec<String>>,
}
