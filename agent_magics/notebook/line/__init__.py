"""The line behind a magic: its grammar, the catalogue of commands, help and completion."""
