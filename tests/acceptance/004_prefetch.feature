Feature: Report 5, background prefetch in a program that is not async
  The report keeps a set of background tasks, puts a `gather` of all prefetches into it, and cancels
  the set at the end. The line that creates the task raises TypeError.

  # --- the report's verification -----------------------------------------------------------------

  @criterion
  Scenario: Background tasks are tracked properly
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @criterion @as_reported
  Scenario: as reported, they are not tracked
    Given the reported version of "prefetch"
    When it ends while two channels are being fetched
    Then its clean-up does not know how many fetches there are

  @criterion @as_proposed
  Scenario: with the report's fix, the program does not copy anything any more
    Given the proposed version of "prefetch"
    When it ends while two channels are being fetched
    Then nothing is copied
    And a fetch continues

  @criterion
  Scenario: The happy path has not changed
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then the channel is copied

  @criterion
  Scenario: Clean-up cancels all tasks
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then no fetch continues

  @criterion @as_reported
  Scenario: as reported, it does not
    Given the reported version of "prefetch"
    When it ends while two channels are being fetched
    Then a fetch continues

  @criterion @as_proposed
  Scenario: as the report means it, it asks them to end and does not wait
    Given the proposed version of "prefetch"
    When it ends while two channels are being fetched, if the gather were a task
    Then a fetch continues
    And its clean-up does not know how many fetches there are

  @criterion @real
  Scenario: No resource leaks
    Given the fixed version of "prefetch"
    When it runs with its real parts
    Then nothing is leaked

  @criterion @real @as_reported
  Scenario: as reported, tasks and a session are leaked
    Given the reported version of "prefetch"
    When it runs with its real parts
    Then something is leaked

  @criterion @real @as_proposed
  Scenario: with the report's fix, they are leaked as well
    Given the proposed version of "prefetch"
    When it runs with its real parts
    Then something is leaked

  @criterion
  Scenario: A lifecycle guide, a clean-up guide and a resource guide
    When the guides that the report wants are looked up
    Then they are all there

  # --- what must hold ----------------------------------------------------------------------------

  @S4.1
  Scenario: S4.1 Every child is tracked by itself, not as one bundle
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @S4.2
  Scenario: S4.2 Async close cancels and joins; nothing is pending after it
    Given the fixed version of "prefetch"
    When it is closed on its loop while two channels are being fetched
    Then no fetch continues

  @S4.3
  Scenario: S4.3 Tasks are closed before the session, the pool and the loop that they use
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then the fetches end first, then the session that they use

  @S4.3 @as_reported
  Scenario: S4.3 as reported, the session is never closed
    Given the reported version of "prefetch"
    When it ends while two channels are being fetched
    Then the session is not closed after the fetches

  @S4.4
  Scenario: S4.4 A blocking close that any thread may call, and bounded
    Given the fixed version of "prefetch"
    When three threads close it within 0.2 seconds, and a fetch ignores its cancel
    Then each of them has its answer within 10 seconds, which names what is left

  @S4.5 @left_over
  Scenario: S4.5 Work in a thread pool is named as still running; no result is accepted after close
    Given the fixed version of "prefetch"
    When it is closed while a thread of its pool does not come to an end
    Then the thread is named as still running, and its result is not accepted

  @S4.6
  Scenario: S4.6 A key is fetched once: a second request joins the fetch in flight
    Given the fixed version of "prefetch"
    When it asks for a channel that is being fetched
    Then each channel is fetched once

  @S4.6 @as_reported
  Scenario: S4.6 as reported, it is fetched twice
    Given the reported version of "prefetch"
    When it asks for a channel that is being fetched
    Then a channel is fetched a second time

  @S4.7
  Scenario: S4.7 Errors are reported
    Given the fixed version of "prefetch"
    When a channel that is fetched ahead does not exist
    Then a request for it gets the error

  @S4.7
  Scenario: S4.7 and the counts are true
    Given the fixed version of "prefetch"
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @S4.8
  Scenario: S4.8 An owner that goes away without close still gets a loud, named report
    Given the fixed version of "prefetch"
    When its owner goes away without closing it
    Then a warning names it, and no fetch continues

  # --- by reading --------------------------------------------------------------------------------

  @as_reported
  Scenario: as reported, check finds it in the source
    Given the reported version of "prefetch"
    When its code is checked
    Then check reports a finding

  @as_proposed
  Scenario: with the report's fix, check finds it in the source
    Given the proposed version of "prefetch"
    When its code is checked
    Then check reports a finding

  Scenario: Check reports nothing in the fixed program
    Given the fixed version of "prefetch"
    When its code is checked
    Then check reports nothing
