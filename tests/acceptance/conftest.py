"""Behave runs what is in this folder (`nox -s acceptance`); pytest has no business here."""

collect_ignore_glob = ["*"]
