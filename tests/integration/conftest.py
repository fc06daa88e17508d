"""Robot Framework runs what is in this folder (`nox -s integration`); pytest collects nothing here."""

collect_ignore_glob = ["*"]
