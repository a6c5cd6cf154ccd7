//! Reads `network-sandbox.log`, also while it is being written.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::Error;

/// Read access to a network log of text lines. The file need not exist yet.
#[derive(Clone, Debug)]
pub struct NetworkLog {
    path: PathBuf,
}

impl NetworkLog {
    /// The log at a path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything has been written.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// The whole text; empty when there is no file.
    pub fn read_raw(&self) -> Result<String, Error> {
        let (bytes, _) = self.read_from(0)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The whole lines after `offset`, and the offset to ask with next time.
    ///
    /// A line that is still being written is left for the next call. An offset behind the end of
    /// the file means that the log was rotated, and reading begins anew.
    pub fn tail(&self, offset: u64) -> Result<(Vec<String>, u64), Error> {
        let (bytes, start) = self.read_from(offset)?;
        let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') else {
            return Ok((Vec::new(), start));
        };
        let lines = bytes[..end]
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        Ok((lines, start + end as u64 + 1))
    }

    /// Every line from the beginning, and then each new one as it comes.
    pub fn follow(&self) -> Follow {
        Follow {
            log: self.clone(),
            offset: 0,
            lines: VecDeque::new(),
        }
    }

    fn read_from(&self, offset: u64) -> Result<(Vec<u8>, u64), Error> {
        match read_bytes(&self.path, offset) {
            Ok(read) => Ok(read),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((Vec::new(), 0)),
            Err(source) => Err(Error::Log {
                path: self.path.clone(),
                source,
            }),
        }
    }
}

/// A log that is being followed.
#[derive(Debug)]
pub struct Follow {
    log: NetworkLog,
    offset: u64,
    lines: VecDeque<String>,
}

impl Follow {
    /// Waits for the next line. Safe to cancel: no line is lost.
    pub async fn next(&mut self) -> Result<String, Error> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(line);
            }
            let (lines, offset) = self.log.tail(self.offset)?;
            self.offset = offset;
            self.lines.extend(lines);
            if self.lines.is_empty() {
                tokio::time::sleep(POLL).await;
            }
        }
    }
}

/// Reads from `offset`, or from the start where the file is shorter than that.
fn read_bytes(path: &Path, offset: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let start = if offset > file.metadata()?.len() {
        0
    } else {
        offset
    };
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((bytes, start))
}

/// How often a followed file is looked at.
const POLL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    #[test]
    fn a_line_that_is_still_being_written_is_left_for_later() {
        let directory = tempfile::tempdir().unwrap();
        let log = NetworkLog::new(directory.path().join("log"));
        assert_eq!(log.tail(0).unwrap(), (vec![], 0));
        assert_eq!(log.read_raw().unwrap(), "");

        fs::write(log.path(), "one\n\ntwo\nthr").unwrap();
        let (lines, offset) = log.tail(0).unwrap();
        assert_eq!(
            (lines, offset),
            (vec!["one".to_owned(), "two".to_owned()], 9)
        );

        fs::OpenOptions::new()
            .append(true)
            .open(log.path())
            .unwrap()
            .write_all(b"ee\n")
            .unwrap();
        assert_eq!(log.tail(offset).unwrap(), (vec!["three".to_owned()], 15));

        fs::write(log.path(), "new\n").unwrap();
        assert_eq!(log.tail(15).unwrap(), (vec!["new".to_owned()], 4));
    }

    #[tokio::test]
    async fn a_follower_sees_lines_as_they_come() {
        let directory = tempfile::tempdir().unwrap();
        let log = NetworkLog::new(directory.path().join("log"));
        let mut follow = log.follow();
        fs::write(log.path(), "one\n").unwrap();
        assert_eq!(follow.next().await.unwrap(), "one");

        let waiting = tokio::spawn(async move { follow.next().await.unwrap() });
        fs::OpenOptions::new()
            .append(true)
            .open(log.path())
            .unwrap()
            .write_all(b"two\n")
            .unwrap();
        assert_eq!(waiting.await.unwrap(), "two");
    }
}
