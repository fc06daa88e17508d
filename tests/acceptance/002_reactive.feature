@tdd_issue @tdd_issue_7105
Feature: Report 3, a reactive pipeline that runs graphs on an event loop
  The report is about a set of tasks that several threads change, and proposes a lock. The set does not
  break. A lock does not wake the loop, does not end runs that start during the clean-up, and does not
  keep a run that fails from ending the whole stream.

  # --- the report's acceptance criteria. That all nox stages pass and coverage is at least 97 % is
  # --- held by nox itself; the benchmark is in benchmarks/, the Robot test in tests/integration.

  @criterion
  Scenario: The registry is changed by the loop alone, with proper scheduling
    Given the fixed version of "reactive"
    When messages come from another thread, and all changes of the registry are noted
    Then only the loop's thread changes it

  @criterion @as_reported
  Scenario: as reported, other threads change it
    Given the reported version of "reactive"
    When messages come from another thread, and all changes of the registry are noted
    Then other threads change it

  @criterion
  Scenario: What has been submitted is known: no clean-up can miss it
    Given the fixed version of "reactive"
    When another thread cleans up
    Then the waiting request has an answer
    And no run continues after that

  @criterion @as_reported
  Scenario: as reported, clean-up from a thread cancels and does not wait
    Given the reported version of "reactive"
    When another thread cleans up
    Then a run continues after that

  @criterion @as_proposed
  Scenario: with the report's fix, with a lock, it does not wait either
    Given the proposed version of "reactive"
    When another thread cleans up
    Then a run continues after that

  @criterion
  Scenario: Callbacks discard safely, and nothing is leaked after completion under concurrent load
    Given the fixed version of "reactive"
    When 4 threads send 25 messages each, some to fail and some cancelled
    Then all have an answer, and the registry is empty

  @criterion
  Scenario: Clean-up handles concurrent modification
    Given the fixed version of "reactive"
    When a message comes while it is cleaned up
    Then no run continues after that

  @criterion @as_reported
  Scenario: as reported, its snapshot misses later messages
    Given the reported version of "reactive"
    When a message comes while it is cleaned up
    Then a run continues after that

  @criterion @as_proposed
  Scenario: with the report's fix, a lock does not help against that
    Given the proposed version of "reactive"
    When a message comes while it is cleaned up
    Then a run continues after that

  # --- what must hold ----------------------------------------------------------------------------

  @S2.1
  Scenario: S2.1 Submit from any thread starts promptly on an idle loop
    Given the fixed version of "reactive"
    When a message comes from another thread, and the loop is idle
    Then its run starts promptly

  @S2.1 @as_reported
  Scenario: S2.1 as reported, the loop is not woken
    Given the reported version of "reactive"
    When a message comes from another thread, and the loop is idle
    Then the loop is not woken

  @S2.1 @as_proposed
  Scenario: S2.1 with the report's fix, the loop is not woken either
    Given the proposed version of "reactive"
    When a message comes from another thread, and the loop is idle
    Then the loop is not woken

  @S2.2
  Scenario: S2.2 asyncio's debug mode reports nothing
    Given the fixed version of "reactive"
    When a message comes from another thread, in asyncio's debug mode
    Then asyncio reports nothing

  @S2.2 @as_reported
  Scenario: S2.2 as reported, it has
    Given the reported version of "reactive"
    When a message comes from another thread, in asyncio's debug mode
    Then asyncio says that this is not thread-safe

  @S2.3
  Scenario: S2.3 The registry changes on the loop's thread only
    Given the fixed version of "reactive"
    When messages come from another thread, and all changes of the registry are noted
    Then only the loop's thread changes it

  @S2.4 @real
  Scenario: S2.4 A failed run is an outcome of its own message; the stream and its siblings live on
    Given the fixed version of "reactive"
    When a run fails in the middle of a pipeline
    Then each message has its outcome

  @S2.4 @real @as_reported
  Scenario: S2.4 as reported, it ends the stream
    Given the reported version of "reactive"
    When a run fails in the middle of a pipeline
    Then the stream ends, and messages get no answer

  @S2.5
  Scenario: S2.5 Close refuses new work, cancels, and joins until empty, latecomers included
    Given the fixed version of "reactive"
    When a message comes while it is cleaned up
    Then no run continues after that
    And what comes later is refused

  @S2.5 @as_reported
  Scenario: S2.5 as reported, new work is not refused
    Given the reported version of "reactive"
    When a message comes while it is cleaned up
    Then later work is accepted, and never ended

  @S2.6
  Scenario: S2.6 Close from a foreign thread works
    Given the fixed version of "reactive"
    When another thread cleans up
    Then no run continues after that

  @S2.6
  Scenario: S2.6 and is bounded
    Given the fixed version of "reactive"
    When another thread cleans up within 0.2 seconds, and a run ignores its cancel
    Then it returns, and names the runs that are left

  @S2.6
  Scenario: S2.6 On the loop's thread the blocking form raises instead of deadlocking
    Given the fixed version of "reactive"
    When the blocking clean-up is called on the loop's own thread
    Then it raises, and says what to do instead

  @S2.7
  Scenario: S2.7 Many threads, many messages: registry empty, all answered
    Given the fixed version of "reactive"
    When 4 threads send 25 messages each, some to fail and some cancelled
    Then all have an answer, and the registry is empty

  @S2.8
  Scenario Outline: S2.8 A submission to a loop that is gone fails at once with a clear error
    Given the fixed version of "reactive"
    When a message comes to a loop that is <how>
    Then it fails at once, and says why

    Examples:
      | how     |
      | stopped |
      | closed  |

  @S2.8 @as_reported
  Scenario: S2.8 as reported, it is accepted, and never answered
    Given the reported version of "reactive"
    When a message comes to a loop that is stopped
    Then it is accepted, and never answered

  # --- the real pipeline -------------------------------------------------------------------------

  @real
  Scenario: reactivex and langgraph, and nothing is leaked
    Given the fixed version of "reactive"
    When it runs with its real parts
    Then nothing is leaked

  @real @as_reported
  Scenario: as reported, a run is leaked
    Given the reported version of "reactive"
    When it runs with its real parts
    Then something is leaked

  @as_reported
  Scenario: as reported, check finds it in the source
    Given the reported version of "reactive"
    When its code is checked
    Then check reports a finding

  Scenario: Check reports nothing in the fixed program
    Given the fixed version of "reactive"
    When its code is checked
    Then check reports nothing
