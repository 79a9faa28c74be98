"""One fit over very many recordings, each with its states where it is read."""
