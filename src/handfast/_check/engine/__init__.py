"""From paths to findings: which files, what was known of them, and the rules on each.

engine                 the main program
discovery              lists the files
cache, file_facts      what is known from the last run; what other files need of one
dependency_tracking    which modules a result depends on
parallel               distributes the files over processes
check_file             all rules on one file
"""
