Feature: Report 1, a chat bot captures the output of commands, one capture for each user and thread
  The report wants the entry of a task removed unconditionally. Its criteria are checked here on
  the fixed program; where the program as reported, or with the report's fix, does not meet them,
  a scenario shows that.

  # --- the report's success criteria -------------------------------------------------------------

  @criterion
  Scenario: 1. No stale task is referenced after a capture has ended
    Given the fixed version of "captures"
    When a command comes to its end
    Then no entry is left

  @criterion @as_reported
  Scenario: 1. as reported, a capture that is cancelled before its first step stays in the dict
    Given the reported version of "captures"
    When the capture of a command is cancelled at any step
    Then an entry is left

  @criterion
  Scenario: 2. Clean-up is unconditional
    Given the fixed version of "captures"
    When the capture of a command is cancelled at any step
    Then no entry is left

  @criterion @as_proposed
  Scenario: 2. to the letter, popping without a check leaves a running capture that is not tracked
    Given the proposed version of "captures"
    When 3 commands of one user follow each other
    Then a command that was replaced goes on editing

  @criterion
  Scenario: 3. The capture before is cancelled in all orderings
    Given the fixed version of "captures"
    When 3 commands of one user arrive together
    Then only the last command goes on editing

  @criterion @as_reported
  Scenario: 3. as reported, of two commands that arrive together neither cancels the other
    Given the reported version of "captures"
    When 2 commands of one user arrive together
    Then a command that was replaced goes on editing

  @criterion @as_proposed
  Scenario: 3. with the report's fix, that is still so
    Given the proposed version of "captures"
    When 2 commands of one user arrive together
    Then a command that was replaced goes on editing

  @criterion
  Scenario Outline: 4. The dict is cleaned up on completion, on an error and on cancellation
    Given the fixed version of "captures"
    When <what happens>
    Then no entry is left

    Examples:
      | what happens                                       |
      | a command comes to its end                         |
      | the chat refuses what a capture sends              |
      | the capture of a command is cancelled at any step  |

  @criterion
  Scenario: Rapid consecutive commands are handled, and one at a time behaves as before
    Given the fixed version of "captures"
    When 3 commands of one user follow each other
    Then only the last command goes on editing

  # --- what must hold ----------------------------------------------------------------------------

  @S0.1
  Scenario Outline: S0.1 After any end the entry is gone if and only if it is that task's own
    Given the fixed version of "captures"
    When <what happens>
    Then <what holds>

    Examples:
      | what happens                                       | what holds                   |
      | the chat refuses what a capture sends              | no entry is left             |
      | the capture of a command is cancelled at any step  | no entry is left             |
      | 3 commands of one user follow each other           | no entry is left             |
      | 3 commands of one user follow each other           | the last command is tracked  |

  @S0.2
  Scenario: S0.2 A predecessor that finishes late never removes or disturbs its successor
    Given the fixed version of "captures"
    When 2 commands of one user follow each other
    Then the last command is tracked

  @S0.2 @as_proposed
  Scenario: S0.2 with the report's fix, the predecessor evicts its successor
    Given the proposed version of "captures"
    When 2 commands of one user follow each other
    Then the last command is not tracked

  @S0.3
  Scenario: S0.3 At most one live task per key, under any number of interleaved starts
    Given the fixed version of "captures"
    When 3 commands of one user arrive together
    Then no two captures of the user run at once

  @S0.3 @as_reported
  Scenario: S0.3 as reported, two live side by side
    Given the reported version of "captures"
    When 2 commands of one user arrive together
    Then two captures of the user run at once

  @S0.4
  Scenario: S0.4 After a replacement returns, the superseded task produces no further effect
    Given the fixed version of "captures"
    When 2 commands of one user arrive together
    Then only the last command goes on editing

  @S0.4 @as_reported
  Scenario: S0.4 as reported, the superseded one goes on
    Given the reported version of "captures"
    When 2 commands of one user arrive together
    Then a command that was replaced goes on editing

  @S0.5
  Scenario: S0.5 Closing the owner cancels and joins all of them
    Given the fixed version of "captures"
    When the bot stops while 3 users have a command running
    Then no capture is there when close has returned

  @S0.5 @as_reported
  Scenario: S0.5 as reported, close cancels and does not join
    Given the reported version of "captures"
    When the bot stops while 3 users have a command running
    Then a capture is still there when close has returned

  @S0.6
  Scenario: S0.6 Ten thousand replacements on one key, one each on a hundred thousand: nothing is left
    Given the fixed version of "captures"
    When 10000 commands replace each other on one key, and 100000 keys have one each
    Then no entry, no task and no reference is left

  @S0.6 @as_reported
  Scenario: S0.6 as reported, they are there when close has returned
    Given the reported version of "captures"
    When 100 commands replace each other on one key, and 100 keys have one each
    Then an entry or a task is left

  # --- the real bot ------------------------------------------------------------------------------

  @real
  Scenario: A real bash and a real Telegram library, and nothing is leaked
    Given the fixed version of "captures"
    When it runs with its real parts
    Then nothing is leaked

  @real @as_reported
  Scenario: as reported, a capture and its bash are leaked
    Given the reported version of "captures"
    When it runs with its real parts
    Then something is leaked

  @as_reported
  Scenario: as reported, check finds it in the source
    Given the reported version of "captures"
    When its code is checked
    Then check reports a finding

  Scenario: Check reports nothing in the fixed program
    Given the fixed version of "captures"
    When its code is checked
    Then check reports nothing
