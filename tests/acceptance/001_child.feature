Feature: Seed 001, a child process that talks, and the task that drains its stderr
  The report finds that `_kill` clears the handle of the child before it cancels the task that reads
  from it. It asks for the opposite order. Neither is right: what a child says at its end has to be read.

  # --- what the report asks for ------------------------------------------------------------------

  @criterion
  Scenario: The happy path: each question has its own answer
    Given the program "child" as it should be
    When it is asked twice
    Then every question is answered

  @criterion
  Scenario: Whichever of the two resumes first, the one that kills or the one that drains, it works
    Given the program "child" as it should be
    When the child has more to say at its end than a pipe holds
    Then its last words are heard, and it was not killed

  @criterion
  Scenario: The consumer is over before what it consumes is destroyed
    Given the program "child" as it should be
    When it is closed
    Then no task is pending when close has returned

  @criterion @as_proposed
  Scenario: To the letter, a consumer that is cancelled first does not hear the last words
    Given the program "child" as the report would fix it
    When the child has more to say at its end than a pipe holds
    Then its last words are lost

  @criterion
  Scenario: No task goes by a handle that another one clears
    Given the program "child" as it should be
    When a restart and a question come at the same time
    Then no child is started that nobody tracks

  @criterion @as_reported
  Scenario: as reported, that is an active bug: a restart and a question share the handle
    Given the program "child" as reported
    When a restart and a question come at the same time
    Then a child runs that nobody tracks

  @criterion @as_proposed
  Scenario: as the report would fix it, they still do
    Given the program "child" as the report would fix it
    When a restart and a question come at the same time
    Then a child runs that nobody tracks

  # --- what must hold ----------------------------------------------------------------------------

  @S1.1
  Scenario: S1.1 The drain survives any bytes and lines of any length
    Given the program "child" as it should be
    When the child writes what is no text, and a line of any length
    Then every question is answered

  @S1.1
  Scenario: S1.1 in bounded memory
    Given the program "child" as it should be
    When a real child writes a line of 16 megabytes
    Then the noise takes less than 4 megabytes

  @S1.1 @as_reported
  Scenario: S1.1 as reported, the drain dies of it, and the child is blocked for ever
    Given the program "child" as reported
    When the child writes what is no text, and a line of any length
    Then a question is never answered

  @S1.2
  Scenario: S1.2 Order of teardown: signal, drain to the end, join the drain, reap, drop the handle
    Given the program "child" as it should be
    When the child has more to say at its end than a pipe holds
    Then its last words are heard, and it was not killed

  @S1.3
  Scenario: S1.3 Teardown touches only its own process
    Given the program "child" as it should be
    When a restart and a question come at the same time
    Then no child is started that nobody tracks

  @S1.3 @as_reported
  Scenario: S1.3 as reported, a restart refills the attribute that another one clears
    Given the program "child" as reported
    When a restart and a question come at the same time
    Then a child runs that nobody tracks

  @S1.4 @real
  Scenario: S1.4 Close is bounded though a grandchild holds the pipe, and the whole group is gone
    Given the program "child" as it should be
    When a real grandchild holds the pipes, and it is closed
    Then close returns in time, and the whole family is gone

  @S1.5
  Scenario Outline: S1.5 No drain task is pending after close returns
    Given the program "child" as it should be
    When <what happens>
    Then no task is pending when close has returned

    Examples:
      | what happens                                      |
      | it is closed                                      |
      | a real grandchild holds the pipes, and it is closed |

  @S1.5 @real @as_reported
  Scenario: S1.5 as reported, it is cancelled and not awaited
    Given the program "child" as reported
    When a real grandchild holds the pipes, and it is closed
    Then a task is still pending when close has returned

  @S1.6
  Scenario Outline: S1.6 Two at the same time: exactly one live child, and it is tracked
    Given the program "child" as it should be
    When a <one> and a <other> come at the same time
    Then no child is started that nobody tracks

    Examples:
      | one     | other    |
      | close   | close    |
      | close   | question |
      | restart | question |

  @S1.6 @as_reported
  Scenario: S1.6 as reported, a restart and a question start one child too many
    Given the program "child" as reported
    When a restart and a question come at the same time
    Then a child runs that nobody tracks

  @S1.7
  Scenario: S1.7 The last words of a child that ends by itself are heard, and its exit code is right
    Given the program "child" as it should be
    When the child ends by itself
    Then why it went is known, and its exit code

  @S1.8
  Scenario: S1.8 Cancellation while the child is being started leaves no orphan
    Given the program "child" as it should be
    When whoever starts the child is cancelled at any step
    Then no orphan is left

  # --- the real child ----------------------------------------------------------------------------

  @real
  Scenario: A real child with noise, a grandchild and a flood at its end, and nothing is left behind
    Given the program "child" as it should be
    When it runs with its real parts
    Then nothing is left behind

  @real @as_reported
  Scenario: as reported, a child is left behind
    Given the program "child" as reported
    When it runs with its real parts
    Then something is left behind

  @as_reported
  Scenario: as reported, reading the code is enough to see it
    Given the program "child" as reported
    When its code is read
    Then there is something to say against it

  Scenario: There is nothing to say against the program as it should be
    Given the program "child" as it should be
    When its code is read
    Then there is nothing to say against it
