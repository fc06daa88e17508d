*** Settings ***
Documentation       The `holdfast` command from outside: what it says, and with which status it ends.
Library             OperatingSystem
Library             holdfast_command.py

*** Variables ***
${CASE}             ${CURDIR}/../../src/holdfast/casebook/captures
${SCHEDULES}        holdfast.casebook.captures.schedules
${PROGRAMS}         ${CURDIR}/programs

*** Test Cases ***
Help Is Given
    ${result} =    Run Holdfast    --help
    Should Be Equal As Integers    ${result.status}    0
    FOR    ${command}    IN    tour    explain    check    explore    stress
        Should Contain    ${result.printed}    ${command}
        ${own} =    Run Holdfast    ${command}    --help
        Should Be Equal As Integers    ${own.status}    0
        Should Contain    ${own.printed}    Usage
    END

Its Version Is Given
    ${result} =    Run Holdfast    --version
    Should Be Equal As Integers    ${result.status}    0
    Should Match Regexp    ${result.printed}    \\d+\\.\\d+

An Unknown Command Is Bad Use, And The Nearest Is Named
    ${result} =    Run Holdfast    chekc
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    check

Check Finds Nothing In The Program As It Should Be
    ${result} =    Run Holdfast    check    --no-cache    ${CASE}/as_it_should_be.py
    Should Be Equal As Integers    ${result.status}    0

Check Finds Something In The Program As Reported
    ${result} =    Run Holdfast    check    --no-cache    ${CASE}/as_reported.py
    Should Be Equal As Integers    ${result.status}    1
    Should Match Regexp    ${result.printed}    as_reported\\.py:\\d+:\\d+:? HF2

Check Of What Is Not There Is Bad Use
    ${result} =    Run Holdfast    check    --no-cache    no/such/file.py
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    no/such/file.py
    Should Not Contain    ${result.errors}    Traceback

Explore Finds Nothing In The Program As It Should Be
    ${result} =    Run Holdfast    explore    ${SCHEDULES}:as_it_should_be    --schedules    50
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    nothing found

Explore Finds A Schedule Of The Program As Reported, And Replays It
    ${result} =    Run Holdfast    explore    ${SCHEDULES}:as_reported
    Should Be Equal As Integers    ${result.status}    1
    ${_}    ${token} =    Should Match Regexp    ${result.printed}    --replay (\\S+)
    ${again} =    Run Holdfast    explore    ${SCHEDULES}:as_reported    --replay    ${token}
    Should Be Equal As Integers    ${again.status}    1

Explore Of What Is Not There Is Bad Use
    ${result} =    Run Holdfast    explore    ${SCHEDULES}:as_it_shuold_be
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    as_it_should_be
    Should Not Contain    ${result.errors}    Traceback

Stress Finds That Nothing Grows
    ${result} =    Run Holdfast    stress    ${PROGRAMS}/endless.py:two_tasks    -n    40
    Should Be Equal As Integers    ${result.status}    0

Stress Finds What Grows
    ${result} =    Run Holdfast    stress    ${PROGRAMS}/growing.py:grows    -n    100
    Should Be Equal As Integers    ${result.status}    1
    Should Contain    ${result.printed}    tasks

Stress Of A Program That Fails By Itself Is Bad Use
    ${result} =    Run Holdfast    stress    ${PROGRAMS}/growing.py:fails    -n    40
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    by itself

Explain Says What A Code Means
    ${result} =    Run Holdfast    explain    HF201
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    HF201

Explain Of An Unknown Code Is Bad Use
    ${result} =    Run Holdfast    explain    HF999
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    HF999

Tour Tells A Case
    ${result} =    Run Holdfast    tour    captures
    Should Be Equal As Integers    ${result.status}    0
    Should Contain    ${result.printed}    as it should be

Tour Of An Unknown Case Is Bad Use, And The Others Are Named
    ${result} =    Run Holdfast    tour    no_such_case
    Should Be Equal As Integers    ${result.status}    2
    Should Contain    ${result.errors}    captures
