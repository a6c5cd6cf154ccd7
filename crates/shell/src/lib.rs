//! Which shell lines and argument lists may run on a host without any isolation: [`Programs`].
//!
//! Pure: starts nothing and reads no file. A line is split by a shell grammar, every simple command in it must
//! be on the list, and what cannot be judged is refused with a [`Refusal`]. What is let through is printed anew
//! from what was understood ([`Script`]), with every fixed text in single quotes, and it is this print that is to
//! be run: where the grammar and a real shell would read a line differently, the shell never sees the difference.
//!
//! ```
//! use cordon_shell::{Programs, Reason};
//!
//! let programs = Programs::parse(["ls", "grep", "python3"])?;
//! let workspace = "/work/project".as_ref();
//! let script = programs.judge_line("ls -l src | grep main > found.txt", workspace)?;
//! assert_eq!(script.as_str(), "'ls' '-l' 'src' | 'grep' 'main' >'found.txt'\n");
//!
//! let refusal = programs.judge_line("ls $(rm -r .)", workspace).unwrap_err();
//! assert_eq!(refusal.reason, Reason::Substitution);
//! let refusal = programs.judge_line("python3 -c 'print(1)'", workspace).unwrap_err();
//! assert_eq!(refusal.reason, Reason::RunsCode);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The grammar is `rable`'s: MIT, kept up, one dependency, positions, and checked against bash's own parser. Of the
//! others `yash-syntax` is GPL, `conch-parser` has not been touched since 2019, and `brush-parser` ships test libraries
//! and, in 0.4, fills memory on seven hostile bytes. All of them recurse without regard to the stack, so `scan`
//! bounds a line before any grammar sees it.

mod arguments;
mod known;
mod line;
mod programs;
mod refusal;
mod scan;
mod variables;
mod word;

pub use line::Script;
pub use programs::{InvalidProgram, Programs};
pub use refusal::{Reason, Refusal};
pub use variables::judge_variable;
