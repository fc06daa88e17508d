"""All tools at once, on a project as it is: the engine of `handfast audit`.

audit            a whole audit: the plan and the steps
project          what is in the folder: packages, tests, the settings of pytest
budget           how the time is shared out
run_check        `check` on the sources
run_leaks        the suite once, with the leak detector
retry            which command shows a leak again
run_explore      its async tests under many schedules
suite/           the tests of the project
    interpreter  which Python runs them
    runner       pytest in a child process, with a limit of time
    plugin       the plugin of pytest in there, which writes what happens
observation      what one tool has seen
merge            observations of all tools as issues, ranked
report           the result as data
output/          one file for each output
demo/            a service with four bugs, for `handfast audit --demo`
"""
