//! Reads the complete lines of a file that somebody may still be writing to.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use cordon_agents::{Line, LineSplitter};

/// Hands over the complete lines from `offset` on, each with its own offset, and returns the
/// offset after the last of them.
///
/// A line without its LF is left for the next time, so nothing is dropped and nothing comes
/// twice. Reads a bounded piece; at the end of the file the returned offset stays the same.
pub(crate) fn complete_lines(
    path: &Path,
    offset: u64,
    limit: usize,
    mut each: impl FnMut(u64, Line<'_>),
) -> io::Result<u64> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(offset),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(offset))?;
    let mut splitter = LineSplitter::new(limit);
    let mut buffer = vec![0; READ_BYTES];
    let (mut at, mut done) = (offset, offset);
    // An overlong line is reported when it is too long already, but is done with only at its LF.
    let mut overlong: Option<Vec<u8>> = None;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok(done),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for piece in buffer[..count].split_inclusive(|byte| *byte == b'\n') {
            at += piece.len() as u64;
            splitter.push(piece, |line| match line {
                Line::Whole(_) => each(done, line),
                Line::Oversized(head) => overlong = Some(head.to_vec()),
            });
            if piece.ends_with(b"\n") {
                if let Some(head) = overlong.take() {
                    each(done, Line::Oversized(&head));
                }
                done = at;
            }
        }
        if done > offset && at - offset >= PIECE_BYTES {
            return Ok(done);
        }
    }
}

/// What is in the file from `offset` on, if it is no more than `limit` bytes.
pub(crate) fn remainder(path: &Path, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(offset))?;
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

const READ_BYTES: usize = 64 * 1024;

/// How much one call reads before it returns what it has; the next call goes on from there.
const PIECE_BYTES: u64 = 4 * 1024 * 1024;
