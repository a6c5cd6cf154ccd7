//! What is printed and counted.

use std::{
    fmt::Display,
    io::{self, Write},
};

/// The counts so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    pub(crate) fn fail(
        &mut self,
        out: &mut impl Write,
        id: &dyn Display,
        why: &dyn Display,
    ) -> io::Result<()> {
        self.failed += 1;
        writeln!(out, "failed {id}: {why}")
    }

    pub(crate) fn skip(&mut self, out: &mut impl Write, id: &str, reason: &str) -> io::Result<()> {
        self.skipped += 1;
        writeln!(out, "skipped {id}: {reason}")
    }

    /// Prints the last line; true where nothing failed.
    pub(crate) fn finish(&self, out: &mut impl Write) -> io::Result<bool> {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        match skipped {
            0 => writeln!(out, "{passed} passed, {failed} failed")?,
            _ => writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped")?,
        }
        Ok(*failed == 0)
    }
}
