Feature: Seed 004, background prefetch in a program that is not async
  The report keeps a set of background tasks, puts a bundle of all prefetches into it, and cancels what
  is in there at the end. It calls the matter resolved. The line that makes the bundle raises TypeError.

  # --- the report's verification -----------------------------------------------------------------

  @criterion
  Scenario: Background tasks are tracked properly
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @criterion @as_reported
  Scenario: as reported, they are not tracked
    Given the program "prefetch" as reported
    When it ends while two channels are being fetched
    Then its clean-up does not know how many fetches there are

  @criterion @as_proposed
  Scenario: as the report would fix it, the program does not copy anything any more
    Given the program "prefetch" as the report would fix it
    When it ends while two channels are being fetched
    Then nothing is copied
    And a fetch goes on

  @criterion
  Scenario: The happy path has not changed
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then the channel is copied

  @criterion
  Scenario: Clean-up cancels all tasks
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then no fetch goes on

  @criterion @as_reported
  Scenario: as reported, it does not
    Given the program "prefetch" as reported
    When it ends while two channels are being fetched
    Then a fetch goes on

  @criterion @as_proposed
  Scenario: as the report means it, it asks them to end and does not wait
    Given the program "prefetch" as the report would fix it
    When it ends while two channels are being fetched, had the bundle been a task
    Then a fetch goes on
    And its clean-up does not know how many fetches there are

  @criterion @real
  Scenario: No resource leaks
    Given the program "prefetch" as it should be
    When it runs with its real parts
    Then nothing is left behind

  @criterion @real @as_reported
  Scenario: as reported, tasks and a session are left behind
    Given the program "prefetch" as reported
    When it runs with its real parts
    Then something is left behind

  @criterion @real @as_proposed
  Scenario: as the report would fix it, they are left behind as well
    Given the program "prefetch" as the report would fix it
    When it runs with its real parts
    Then something is left behind

  @criterion
  Scenario: A lifecycle guide, a clean-up guide and a resource guide
    When somebody looks for the guides that the report asks for
    Then they are all there

  # --- what must hold ----------------------------------------------------------------------------

  @S4.1
  Scenario: S4.1 Every child is tracked by itself, not as one bundle
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @S4.2
  Scenario: S4.2 Async close cancels and joins; nothing is pending after it
    Given the program "prefetch" as it should be
    When it is closed on its loop while two channels are being fetched
    Then no fetch goes on

  @S4.3
  Scenario: S4.3 Tasks are closed before the session, the pool and the loop that they use
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then the fetches end first, then the session that they use

  @S4.3 @as_reported
  Scenario: S4.3 as reported, nobody closes the session
    Given the program "prefetch" as reported
    When it ends while two channels are being fetched
    Then the session is not closed after the fetches

  @S4.4
  Scenario: S4.4 A blocking close that any thread may call, and bounded
    Given the program "prefetch" as it should be
    When three threads close it within 0.2 seconds, and a fetch does not mind
    Then each of them has its answer within 10 seconds, with the name of who is left

  @S4.5 @left_over
  Scenario: S4.5 Work in a thread pool is named as still running; no result is accepted after close
    Given the program "prefetch" as it should be
    When it is closed while a thread of its pool does not come to an end
    Then the thread is named as still running, and its result is not accepted

  @S4.6
  Scenario: S4.6 A key is fetched once: who comes second joins the fetch under way
    Given the program "prefetch" as it should be
    When it asks for a channel that is being fetched
    Then each channel is fetched once

  @S4.6 @as_reported
  Scenario: S4.6 as reported, it is fetched twice
    Given the program "prefetch" as reported
    When it asks for a channel that is being fetched
    Then a channel is fetched a second time

  @S4.7
  Scenario: S4.7 Errors are reported
    Given the program "prefetch" as it should be
    When a channel that is fetched ahead does not exist
    Then whoever asks for it gets the error

  @S4.7
  Scenario: S4.7 and the counts are true
    Given the program "prefetch" as it should be
    When it ends while two channels are being fetched
    Then each of the fetches is tracked by itself

  @S4.8
  Scenario: S4.8 An owner that goes away without close still gets a loud, named report
    Given the program "prefetch" as it should be
    When its owner goes away without closing it
    Then that is told aloud, by name, and no fetch goes on

  # --- by reading --------------------------------------------------------------------------------

  @as_reported
  Scenario: as reported, reading the code is enough to see it
    Given the program "prefetch" as reported
    When its code is read
    Then there is something to say against it

  @as_proposed
  Scenario: as the report would fix it, reading the code is enough to see that
    Given the program "prefetch" as the report would fix it
    When its code is read
    Then there is something to say against it

  Scenario: There is nothing to say against the program as it should be
    Given the program "prefetch" as it should be
    When its code is read
    Then there is nothing to say against it
