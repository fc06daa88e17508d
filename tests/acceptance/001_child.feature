Feature: Report 2, a child process that talks, and the task that drains its stderr
  The report finds that `_kill` clears the handle of the child before it cancels the task that reads
  from it. It proposes the opposite order. Neither is right: the last output of a child must be read.

  # --- what the report wants ---------------------------------------------------------------------

  @criterion
  Scenario: The happy path: each question has its own answer
    Given the fixed version of "child"
    When it gets two requests
    Then every question is answered

  @criterion
  Scenario: Whichever of the two resumes first, the one that kills or the one that drains, it works
    Given the fixed version of "child"
    When the child writes more at its end than a pipe holds
    Then its last output is read, and it was not killed

  @criterion
  Scenario: The consumer is over before what it consumes is destroyed
    Given the fixed version of "child"
    When it is closed
    Then no task is pending when close has returned

  @criterion @as_proposed
  Scenario: To the letter, a consumer that is cancelled first does not read the last output
    Given the proposed version of "child"
    When the child writes more at its end than a pipe holds
    Then its last output is lost

  @criterion
  Scenario: No task goes by a handle that another one clears
    Given the fixed version of "child"
    When a restart and a question come at the same time
    Then every running child is tracked

  @criterion @as_reported
  Scenario: as reported, that is an active bug: a restart and a question share the handle
    Given the reported version of "child"
    When a restart and a question come at the same time
    Then a child that is not tracked is running

  @criterion @as_proposed
  Scenario: with the report's fix, they still do
    Given the proposed version of "child"
    When a restart and a question come at the same time
    Then a child that is not tracked is running

  # --- what must hold ----------------------------------------------------------------------------

  @S1.1
  Scenario: S1.1 The drain survives any bytes and lines of any length
    Given the fixed version of "child"
    When the child writes what is no text, and a line of any length
    Then every question is answered

  @S1.1
  Scenario: S1.1 in bounded memory
    Given the fixed version of "child"
    When a real child writes a line of 16 megabytes
    Then the noise takes less than 4 megabytes

  @S1.1 @as_reported
  Scenario: S1.1 as reported, the drain ends, and the child blocks forever
    Given the reported version of "child"
    When the child writes what is no text, and a line of any length
    Then a question is never answered

  @S1.2
  Scenario: S1.2 Order of teardown: signal, drain to the end, join the drain, reap, drop the handle
    Given the fixed version of "child"
    When the child writes more at its end than a pipe holds
    Then its last output is read, and it was not killed

  @S1.3
  Scenario: S1.3 Teardown touches only its own process
    Given the fixed version of "child"
    When a restart and a question come at the same time
    Then every running child is tracked

  @S1.3 @as_reported
  Scenario: S1.3 as reported, a restart refills the attribute that another one clears
    Given the reported version of "child"
    When a restart and a question come at the same time
    Then a child that is not tracked is running

  @S1.4 @real
  Scenario: S1.4 Close is bounded though a grandchild holds the pipe, and the whole group is gone
    Given the fixed version of "child"
    When a real grandchild holds the pipes, and it is closed
    Then close returns in time, and the whole family is gone

  @S1.5
  Scenario Outline: S1.5 No drain task is pending after close returns
    Given the fixed version of "child"
    When <what happens>
    Then no task is pending when close has returned

    Examples:
      | what happens                                      |
      | it is closed                                      |
      | a real grandchild holds the pipes, and it is closed |

  @S1.5 @real @as_reported
  Scenario: S1.5 as reported, it is cancelled and not awaited
    Given the reported version of "child"
    When a real grandchild holds the pipes, and it is closed
    Then a task is still pending when close has returned

  @S1.6
  Scenario Outline: S1.6 Two at the same time: exactly one live child, and it is tracked
    Given the fixed version of "child"
    When a <one> and a <other> come at the same time
    Then every running child is tracked

    Examples:
      | one     | other    |
      | close   | close    |
      | close   | question |
      | restart | question |

  @S1.6 @as_reported
  Scenario: S1.6 as reported, a restart and a question start one child too many
    Given the reported version of "child"
    When a restart and a question come at the same time
    Then a child that is not tracked is running

  @S1.7
  Scenario: S1.7 The last output of a child that ends by itself is read, and its exit code is right
    Given the fixed version of "child"
    When the child ends by itself
    Then the reason of its end and its exit code are known

  @S1.8
  Scenario: S1.8 Cancellation while the child is being started leaves no orphan
    Given the fixed version of "child"
    When the task that starts the child is cancelled at any step
    Then no orphan is left

  # --- the real child ----------------------------------------------------------------------------

  @real
  Scenario: A real child with noise, a grandchild and a flood at its end, and nothing is leaked
    Given the fixed version of "child"
    When it runs with its real parts
    Then nothing is leaked

  @real @as_reported
  Scenario: as reported, a child is leaked
    Given the reported version of "child"
    When it runs with its real parts
    Then something is leaked

  @as_reported
  Scenario: as reported, check finds it in the source
    Given the reported version of "child"
    When its code is checked
    Then check reports a finding

  Scenario: Check reports nothing in the fixed program
    Given the fixed version of "child"
    When its code is checked
    Then check reports nothing
