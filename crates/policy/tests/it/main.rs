//! What holds of every input, not only of those somebody thought of.

#[cfg(test)]
mod properties;
