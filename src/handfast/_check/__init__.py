"""Finds lifetime bugs in source code: the engine of `handfast.check`.

engine               a whole run
discovery            which files, without those that git ignores
settings             the settings of each file, from pyproject.toml and the command line
settings_file        the table [tool.handfast.check], and the lines of its errors
selection            which codes
path_patterns        patterns for paths in the settings
file_facts           what is known about a file before it is parsed
cache                results of earlier runs
parallel             files on several processes
check_file           one file: parse it, run the rules, apply suppressions
source               bytes, text and tree of a file
dependency_tracking  which other modules a result depends on
model/               what the rules know about code
rules/               one file for each rule
fixes/               edits that fix a finding
suppressions         `noqa` comments
finding, report      the results
apply_fixes          edits into files
add_noqa             comments that suppress findings
baseline             known findings
output/              one file for each format
statistics           the number of findings of each code
"""
