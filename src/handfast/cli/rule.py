"""`handfast rule HF101`: the same as `handfast explain HF101`, under the name that ruff uses."""

from handfast.cli.explain import completions, main

__all__ = ["completions", "main"]
