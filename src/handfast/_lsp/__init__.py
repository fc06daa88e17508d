"""The language server of `handfast lsp`: the findings of `check` in an editor.

    server    the documents that are open, when they are checked, and what the editor requests
    document  one checked document: its diagnostics, its quick fixes, its hover text

It needs pygls, which the extra `[lsp]` brings. Only `handfast.cli.lsp` imports it.
"""
