*** Settings ***
Documentation       The `handfast` command as a process: its output and its exit status.
Library             OperatingSystem
Library             handfast_command.py
Variables           clone_on_path.py

*** Variables ***
${EXAMPLE}          ${CLONE}/examples/captures
${EXPLORED}         examples.captures.explored
${PROGRAMS}         ${CURDIR}/programs

*** Test Cases ***
Help Is Printed
    ${result} =    Run Handfast    --help
    Should Be Equal As Integers    ${result.status}    0
    FOR    ${command}    IN    explain    check    explore    stress
        Should Contain    ${result.printed}    ${command}
        ${own} =    Run Handfast    ${command}    --help
        Should Be Equal As Integers    ${own.status}    0
        Should Contain    ${own.printed}    Usage    ignore_case=True
    END

Its Version Is Printed
    ${result} =    Run Handfast    --version
    Should Be Equal As Integers    ${result.status}    0
    Should Match Regexp    ${result.printed}    \\d+\\.\\d+

An Unknown Command Is Bad Use, And A Similar One Is Suggested
    ${result} =    Run Handfast    chekc
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    check

Check Finds Nothing In The Fixed Program
    ${result} =    Run Handfast    check    --no-cache    ${EXAMPLE}/fixed.py
    Should Be Equal As Integers    ${result.status}    0

Check Finds Something In The Program As Reported
    ${result} =    Run Handfast    check    --no-cache    ${EXAMPLE}/as_reported.py
    Should Be Equal As Integers    ${result.status}    1
    Should Match Regexp    ${result.printed}    as_reported\\.py:\\d+:\\d+:? HF2

Check Of A Missing File Is Bad Use
    ${result} =    Run Handfast    check    --no-cache    no/such/file.py
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    no/such/file.py
    Should Not Contain    ${result.errors}    Traceback

Explore Finds Nothing In The Fixed Program
    ${result} =    Run Handfast    explore    ${EXPLORED}:fixed    --schedules    50
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    nothing found

Explore Finds A Schedule Of The Program As Reported, And Replays It
    ${result} =    Run Handfast    explore    ${EXPLORED}:as_reported
    Should Be Equal As Integers    ${result.status}    1
    ${_}    ${token} =    Should Match Regexp    ${result.printed}    --replay (\\S+)
    ${again} =    Run Handfast    explore    ${EXPLORED}:as_reported    --replay    ${token}
    Should Be Equal As Integers    ${again.status}    1

Explore Of A Missing Function Is Bad Use
    ${result} =    Run Handfast    explore    ${EXPLORED}:fixd
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    fixed
    Should Not Contain    ${result.errors}    Traceback

Stress Finds That Nothing Grows
    ${result} =    Run Handfast    stress    ${PROGRAMS}/endless.py:two_tasks    -n    40
    Should Be Equal As Integers    ${result.status}    0

Stress Finds What Grows
    ${result} =    Run Handfast    stress    ${PROGRAMS}/growing.py:grows    -n    100
    Should Be Equal As Integers    ${result.status}    1
    Should Contain    ${result.printed}    tasks

Stress Of A Program That Fails Without A Cancel Is Bad Use
    ${result} =    Run Handfast    stress    ${PROGRAMS}/growing.py:fails    -n    40
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    fails without a cancel

Explain Says What A Code Means
    ${result} =    Run Handfast    explain    HF201
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    HF201

Explain Of An Unknown Code Is Bad Use
    ${result} =    Run Handfast    explain    HF999
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    HF999

An Example Is Shown
    ${result} =    Run Examples    captures
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    with the report's fix

An Unknown Example Is Bad Use, And The Others Are Named
    ${result} =    Run Examples    no_such_example
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    captures

Rule Is Another Name Of Explain
    ${rule} =    Run Handfast    rule    HF101
    ${explained} =    Run Handfast    explain    HF101
    Should Be Equal As Integers    ${rule.status}    0
    Should Be Equal    ${rule.printed}    ${explained.printed}

Check Prints Each Format, And Exits With Zero On Request
    FOR    ${form}    IN    text    concise    grouped    json    sarif    github    gitlab    junit
        ${result} =    Run Handfast    check    --no-cache    --exit-zero    --output-format    ${form}    ${EXAMPLE}/as_reported.py
        Should Be Equal As Integers    ${result.status}    0
        Should Contain    ${result.printed}    HF2
        Should Be Empty    ${result.errors}
    END
