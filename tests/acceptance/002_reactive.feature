@tdd_issue @tdd_issue_7105
Feature: Seed 002, a reactive pipeline that runs graphs on an event loop
  The report fears for a set of tasks that several threads change, and asks for a lock. The set is not
  what breaks. A lock does not wake the loop, does not end who comes while it is cleaned up, and does not
  keep a run that fails from ending the whole stream.

  # --- the report's acceptance criteria. That all nox stages pass and coverage is at least 97 % is
  # --- held by nox itself; the benchmark is in benchmarks/, the Robot test in tests/integration.

  @criterion
  Scenario: The registry is changed by the loop alone, with proper scheduling
    Given the program "reactive" as it should be
    When messages come from another thread, and all changes of the registry are noted
    Then only the loop's thread changes it

  @criterion @as_reported
  Scenario: as reported, other threads change it
    Given the program "reactive" as reported
    When messages come from another thread, and all changes of the registry are noted
    Then other threads change it

  @criterion
  Scenario: What has been submitted is known: no clean-up can miss it
    Given the program "reactive" as it should be
    When another thread cleans up
    Then who was waiting has an answer
    And no run goes on after that

  @criterion @as_reported
  Scenario: as reported, clean-up from a thread cancels and does not wait
    Given the program "reactive" as reported
    When another thread cleans up
    Then a run goes on after that

  @criterion @as_proposed
  Scenario: as the report would fix it, with a lock, it does not wait either
    Given the program "reactive" as the report would fix it
    When another thread cleans up
    Then a run goes on after that

  @criterion
  Scenario: Callbacks discard safely, and nothing is leaked after completion under concurrent load
    Given the program "reactive" as it should be
    When 4 threads send 25 messages each, some to fail and some cancelled
    Then all have an answer, and the registry is empty

  @criterion
  Scenario: Clean-up handles concurrent modification
    Given the program "reactive" as it should be
    When a message comes while it is cleaned up
    Then no run goes on after that

  @criterion @as_reported
  Scenario: as reported, its snapshot misses who comes meanwhile
    Given the program "reactive" as reported
    When a message comes while it is cleaned up
    Then a run goes on after that

  @criterion @as_proposed
  Scenario: as the report would fix it, a lock does not help against that
    Given the program "reactive" as the report would fix it
    When a message comes while it is cleaned up
    Then a run goes on after that

  # --- what must hold ----------------------------------------------------------------------------

  @S2.1
  Scenario: S2.1 Submit from any thread starts promptly on an idle loop
    Given the program "reactive" as it should be
    When a message comes from another thread, and the loop is idle
    Then its run starts promptly

  @S2.1 @as_reported
  Scenario: S2.1 as reported, the loop is not woken
    Given the program "reactive" as reported
    When a message comes from another thread, and the loop is idle
    Then nobody wakes the loop

  @S2.1 @as_proposed
  Scenario: S2.1 as the report would fix it, the loop is not woken either
    Given the program "reactive" as the report would fix it
    When a message comes from another thread, and the loop is idle
    Then nobody wakes the loop

  @S2.2
  Scenario: S2.2 asyncio's debug mode has nothing to say
    Given the program "reactive" as it should be
    When a message comes from another thread, in asyncio's debug mode
    Then asyncio has nothing to say

  @S2.2 @as_reported
  Scenario: S2.2 as reported, it has
    Given the program "reactive" as reported
    When a message comes from another thread, in asyncio's debug mode
    Then asyncio says that this is not thread-safe

  @S2.3
  Scenario: S2.3 The registry changes on the loop's thread only
    Given the program "reactive" as it should be
    When messages come from another thread, and all changes of the registry are noted
    Then only the loop's thread changes it

  @S2.4 @real
  Scenario: S2.4 A failed run is an outcome of its own message; the stream and its siblings live on
    Given the program "reactive" as it should be
    When a run fails in the middle of a pipeline
    Then each message has its outcome

  @S2.4 @real @as_reported
  Scenario: S2.4 as reported, it ends the stream
    Given the program "reactive" as reported
    When a run fails in the middle of a pipeline
    Then the stream ends, and messages get no answer

  @S2.5
  Scenario: S2.5 Close refuses new work, cancels, and joins until empty, latecomers included
    Given the program "reactive" as it should be
    When a message comes while it is cleaned up
    Then no run goes on after that
    And what comes later is refused

  @S2.5 @as_reported
  Scenario: S2.5 as reported, new work is not refused
    Given the program "reactive" as reported
    When a message comes while it is cleaned up
    Then what comes later is taken, and never ended

  @S2.6
  Scenario: S2.6 Close from a foreign thread works
    Given the program "reactive" as it should be
    When another thread cleans up
    Then no run goes on after that

  @S2.6
  Scenario: S2.6 and is bounded
    Given the program "reactive" as it should be
    When another thread cleans up within 0.2 seconds, and a run does not mind
    Then it returns, and names who is left

  @S2.6
  Scenario: S2.6 On the loop's thread the blocking form raises instead of deadlocking
    Given the program "reactive" as it should be
    When the blocking clean-up is called on the loop's own thread
    Then it raises, and says what to do instead

  @S2.7
  Scenario: S2.7 Many threads, many messages: registry empty, everybody answered
    Given the program "reactive" as it should be
    When 4 threads send 25 messages each, some to fail and some cancelled
    Then all have an answer, and the registry is empty

  @S2.8
  Scenario Outline: S2.8 A submission to a loop that is gone fails at once with a clear error
    Given the program "reactive" as it should be
    When a message comes to a loop that is <how>
    Then it fails at once, and says why

    Examples:
      | how     |
      | stopped |
      | closed  |

  @S2.8 @as_reported
  Scenario: S2.8 as reported, it is taken, and never answered
    Given the program "reactive" as reported
    When a message comes to a loop that is stopped
    Then it is taken, and never answered

  # --- the real pipeline -------------------------------------------------------------------------

  @real
  Scenario: reactivex and langgraph, and nothing is left behind
    Given the program "reactive" as it should be
    When it runs with its real parts
    Then nothing is left behind

  @real @as_reported
  Scenario: as reported, a run is left behind
    Given the program "reactive" as reported
    When it runs with its real parts
    Then something is left behind

  @as_reported
  Scenario: as reported, reading the code is enough to see it
    Given the program "reactive" as reported
    When its code is read
    Then there is something to say against it

  Scenario: There is nothing to say against the program as it should be
    Given the program "reactive" as it should be
    When its code is read
    Then there is nothing to say against it
