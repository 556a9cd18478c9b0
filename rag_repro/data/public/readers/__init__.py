"""One reader a format: a path in, `Record`s out (and a corpus where there is one)."""
