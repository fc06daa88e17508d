"""How the report of an audit is shown. One file for each output."""
