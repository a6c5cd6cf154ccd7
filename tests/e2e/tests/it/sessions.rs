//! Containers that live as long as a session: by the library, and on the command line.

mod command_line;
mod library;
