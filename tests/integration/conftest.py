"""Robot Framework runs what is in this folder (`nox -s integration`); pytest has no business here."""

collect_ignore_glob = ["*"]
