//! Writes an archive of a few plain files, in the form of POSIX.

/// An archive on its way.
#[derive(Debug, Default)]
pub(super) struct Tar(Vec<u8>);

impl Tar {
    /// Adds a file of root's. Its name has 100 bytes at most.
    pub(super) fn file(mut self, name: &str, mode: Mode, content: &[u8]) -> Self {
        self.0.extend(header(name, mode, content.len()));
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // Two empty blocks end it.
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

/// What anybody may do with a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Read,
    Execute,
}

fn header(name: &str, mode: Mode, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(
        100,
        match mode {
            Mode::Read => "0000644",
            Mode::Execute => "0000755",
        },
    );
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{size:011o}"));
    put(136, "00000000000");
    // The sum is taken with its own field full of spaces.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    header[148..156].copy_from_slice(text.as_bytes());
    header
}

const BLOCK: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tar is the judge")]
    fn tar_reads_the_archive() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive");
        let archive = Tar::default()
            .file("program", Mode::Execute, b"a program")
            .file("hosts", Mode::Read, &[b'h'; BLOCK])
            .finish();
        std::fs::write(&path, archive).unwrap();
        let tar = |flags: &[&str]| {
            let output = std::process::Command::new("tar")
                .args(flags)
                .arg("-f")
                .arg(&path)
                .output()
                .unwrap();
            assert!(
                output.status.success() && output.stderr.is_empty(),
                "{output:?}"
            );
            String::from_utf8(output.stdout).unwrap()
        };
        let content = "a program".to_owned() + &"h".repeat(BLOCK);
        assert_eq!(tar(&["-x", "--to-stdout"]), content);
        let listed = tar(&["-tv", "--numeric-owner"]);
        let mut lines = listed.lines();
        assert!(lines.next().unwrap().starts_with("-rwxr-xr-x 0/0 "));
        assert!(lines.next().unwrap().starts_with("-rw-r--r-- 0/0 "));
    }
}
