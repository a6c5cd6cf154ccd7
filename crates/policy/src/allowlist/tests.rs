mod decide;
mod read;
