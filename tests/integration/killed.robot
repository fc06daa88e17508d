*** Settings ***
Documentation       A command that is killed leaves no process and no half-written file, and
...                 the next one works.
Library             OperatingSystem
Library             handfast_command.py
Test Setup          A New Folder
Test Teardown       Remove Directory    ${FOLDER}    recursive=True

*** Variables ***
${PROGRAM}          ${CURDIR}/programs/endless.py
${BASELINE}         known.json

*** Test Cases ***
Ctrl-C In The Middle Of A Check
    Files Of Asyncio    ${FOLDER}    copies=4
    ${command} =    At Work    check    --jobs    2    .    cwd=${FOLDER}    runs=2    halt_at=worker
    ${result} =    Killed By    ${command}    SIGINT
    Should Be Equal As Integers    ${result.status}    130
    Should Be Equal    ${result.errors}    interrupted\n
    Should Have Left No Process    ${command}
    Should Be A Cache    ${FOLDER}    whole=${False}
    The Next Check Works

A Check That Is Killed In The Middle
    [Tags]    orphans
    Files Of Asyncio    ${FOLDER}    copies=4
    ${command} =    At Work    check    --jobs    2    .    cwd=${FOLDER}    runs=2    halt_at=worker
    ${result} =    Killed By    ${command}    SIGKILL
    Should Be Equal As Integers    ${result.status}    -9
    Should Have Left No Process    ${command}
    Should Be A Cache    ${FOLDER}    whole=${False}
    The Next Check Works

A Check That Is Killed While It Writes Its Cache
    Something To Find
    Run Handfast    check    cwd=${FOLDER}
    ${before} =    File Content    ${FOLDER}/.handfast_cache/check.json
    Something Else To Find
    ${command} =    Halted    check    --jobs    1    cwd=${FOLDER}
    Killed By    ${command}    SIGKILL
    Should Have Left No Process    ${command}
    ${after} =    File Content    ${FOLDER}/.handfast_cache/check.json
    Should Be Equal    ${after}    ${before}
    The Next Check Works

Ctrl-C While A Check Writes Its Cache
    Something To Find
    ${command} =    Halted    check    --jobs    1    cwd=${FOLDER}
    ${result} =    Killed By    ${command}    SIGINT
    Should Be Equal As Integers    ${result.status}    130
    Should Not Contain    ${result.errors}    Traceback
    Should Have Left No Process    ${command}
    ${left} =    List Directory    ${FOLDER}/.handfast_cache    pattern=*check.*
    Should Be Empty    ${left}
    The Next Check Works

A Check That Is Killed While It Writes A Baseline
    Something To Find
    Run Handfast    check    --no-cache    --write-baseline    ${BASELINE}    cwd=${FOLDER}
    ${before} =    File Content    ${FOLDER}/${BASELINE}
    Something Else To Find
    ${command} =    Halted    check    --no-cache    --write-baseline    ${BASELINE}    cwd=${FOLDER}
    Killed By    ${command}    SIGKILL
    Should Have Left No Process    ${command}
    ${after} =    File Content    ${FOLDER}/${BASELINE}
    Should Be Equal    ${after}    ${before}
    ${result} =    Run Handfast    check    --no-cache    --baseline    ${BASELINE}    cwd=${FOLDER}
    Should Be Equal As Integers    ${result.status}    1
    Should Contain    ${result.printed}    another.py
    Should Not Contain    ${result.printed}    leaks.py

Ctrl-C While A Check Writes A Baseline
    Something To Find
    ${command} =    Halted    check    --no-cache    --write-baseline    ${BASELINE}    cwd=${FOLDER}
    ${result} =    Killed By    ${command}    SIGINT
    Should Be Equal As Integers    ${result.status}    130
    Should Not Contain    ${result.errors}    Traceback
    Should Have Left No Process    ${command}
    ${left} =    List Directory    ${FOLDER}    pattern=*known*
    Should Be Empty    ${left}

Ctrl-C In The Middle Of An Exploration
    ${command} =    Exploring
    ${result} =    Killed By    ${command}    SIGINT
    Should Be Equal As Integers    ${result.status}    130
    Should Contain    ${result.printed}    nothing found
    Should Have Left No Process    ${command}
    The Next Exploration Works

An Exploration That Is Killed In The Middle
    [Tags]    orphans
    ${command} =    Exploring
    ${result} =    Killed By    ${command}    SIGKILL
    Should Be Equal As Integers    ${result.status}    -9
    Should Have Left No Process    ${command}
    The Next Exploration Works

Ctrl-C In The Middle Of A Stress Of A Program With A Child
    ${command} =    At Work    stress    ${PROGRAM}:held_child    -n    100000    cwd=${FOLDER}    runs=5
    ${result} =    Killed By    ${command}    SIGINT
    Should Be Equal As Integers    ${result.status}    130
    Should Have Left No Process    ${command}
    The Next Stress Works

A Stress That Is Killed In The Middle
    ${command} =    At Work    stress    ${PROGRAM}:two_tasks    -n    100000    cwd=${FOLDER}    runs=20
    ${result} =    Killed By    ${command}    SIGKILL
    Should Be Equal As Integers    ${result.status}    -9
    Should Have Left No Process    ${command}
    The Next Stress Works

*** Keywords ***
A New Folder
    ${folder} =    Evaluate    tempfile.mkdtemp(prefix="handfast-")    modules=tempfile
    Set Test Variable    ${FOLDER}    ${folder}

Something To Find
    Create File    ${FOLDER}/pyproject.toml
    Create File    ${FOLDER}/leaks.py    import asyncio\nasync def main():\n${SPACE*4}await asyncio.sleep(1)\n${SPACE*4}asyncio.create_task(main())\n

Something Else To Find
    Create File    ${FOLDER}/another.py    import asyncio\nasync def work():\n${SPACE*4}await asyncio.sleep(1)\n${SPACE*4}asyncio.create_task(work())\n

Exploring
    ${command} =    At Work    explore    ${PROGRAM}:two_tasks    --schedules    10000000    --workers    2
    ...    cwd=${FOLDER}    runs=20
    RETURN    ${command}

The Next Check Works
    Something To Find
    ${result} =    Run Handfast    check    leaks.py    cwd=${FOLDER}
    Should Be Equal As Integers    ${result.status}    1
    Should Contain    ${result.printed}    HF101
    Should Be A Cache    ${FOLDER}

The Next Exploration Works
    ${result} =    Run Handfast    explore    ${PROGRAM}:two_tasks    --schedules    20    --workers    2
    Should Be Equal As Integers    ${result.status}    0

The Next Stress Works
    ${result} =    Run Handfast    stress    ${PROGRAM}:two_tasks    -n    20
    Should Be Equal As Integers    ${result.status}    0
