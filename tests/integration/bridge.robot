*** Settings ***
Documentation       Graphs that run concurrently through the bridge do not leak. (Report 3 wants this test.)
Library             Collections
Variables           clone_on_path.py
Library             graph_bridge.py

*** Test Cases ***
Concurrent Graph Execution Through A Pipeline Does Not Leak
    ${left} =    Leaks Of    Through A Pipeline    200
    Should Be Empty    ${left}

Concurrent Graph Execution From Threads, Closed In The Middle, Does Not Leak
    ${left} =    Leaks Of    Threads And A Close In The Middle    4    50
    Should Be Empty    ${left}

The Bridge As Reported Leaks
    ${left} =    Leaks Of    Reported Bridge Closed In The Middle    3
    ${runs} =    Get Matches    ${left}    HF102*running RxPyLangGraphBridge._execute*
    Length Should Be    ${runs}    3
