Feature: Report 4, phases of an agent over a stream, under a task group
  A wrapper takes errors for noise because of their text, and returns a success. The report wants the noise
  analysed, resources tracked, and clean-up shielded. The cause is a stream that yields inside a task
  group; the code in the report raises an error, or does not help.

  # --- the report's recommended fixes and its tests ----------------------------------------------

  @criterion
  Scenario: Errors are not masked
    Given the fixed version of "phases"
    When the CLI fails
    Then its error is raised

  @criterion @as_reported
  Scenario: as reported, an error is turned into a success
    Given the reported version of "phases"
    When the CLI fails
    Then a success is returned

  @criterion
  Scenario: Clean-up completes though the phase is cancelled
    Given the fixed version of "phases"
    When a phase is left by a cancel
    Then its CLI is gone when the phase is over

  @criterion @as_proposed
  Scenario: with the report's fix, a second cancel abandons the shielded clean-up
    Given the proposed version of "phases"
    When a phase is left by a second cancel
    Then its CLI outlives the phase

  @criterion
  Scenario: A resource is tracked while it is in use
    Given the fixed version of "phases"
    When a resource is tracked
    Then it is known while it is in use, and gone after that

  @criterion @as_proposed
  Scenario: The tracker as the report writes it does not run
    Given the proposed version of "phases"
    When a resource is tracked
    Then the tracker does not work

  @criterion
  Scenario: It is verified that clean-up has succeeded
    Given the fixed version of "phases"
    When a resource is tracked
    Then it is verified that nothing is left

  @criterion @as_proposed
  Scenario: The verification as the report writes it raises an error
    Given the proposed version of "phases"
    When a resource is tracked
    Then it is not known what is left

  @criterion
  Scenario: Errors of task groups are analysed without masking them
    Given the fixed version of "phases"
    When an error has come through two task groups
    Then it counts as an error of the work

  @criterion @as_proposed
  Scenario: The analysis as the report writes it goes by the text, and one level deep
    Given the proposed version of "phases"
    When an error has come through two task groups
    Then it counts as clean-up

  @criterion @real
  Scenario: Resource leak detection: a search leaves as many descriptors as there were
    Given the fixed version of "phases"
    When 10 searches end, and one is timed out
    Then there are as many descriptors as before

  @criterion @real
  Scenario: Stress: operations with forced time-outs, and no resource accumulates
    Given the fixed version of "phases"
    When 20 phases are timed out, or cancelled, with real parts
    Then nothing grows

  # --- what must hold ----------------------------------------------------------------------------

  @S3.1
  Scenario Outline: S3.1 A stream or resource is entered and left in one owner task
    Given the fixed version of "phases"
    When a phase is left by <way>
    Then the stream and the session are left in the task that entered them

    Examples:
      | way        |
      | a result   |
      | an error   |
      | a cancel   |
      | a time-out |

  @S3.1 @as_reported
  Scenario: S3.1 as reported, the collector closes the stream, in another task
    Given the reported version of "phases"
    When a phase is left by a result
    Then the stream is left in another task

  @S3.1 @as_proposed
  Scenario: S3.1 with the report's fix, the shield closes it in another task
    Given the proposed version of "phases"
    When a phase is left by a result
    Then the stream is left in another task

  @S3.2
  Scenario: S3.2 The host task is never cancelled for it
    Given the fixed version of "phases"
    When the CLI fails while the phase searches
    Then the phase is not cancelled for it
    And its error is raised

  @S3.2 @as_reported
  Scenario: S3.2 as reported, the group of the stream cancels the phase
    Given the reported version of "phases"
    When the CLI fails while the phase searches
    Then the phase is cancelled for it

  @S3.3
  Scenario: S3.3 Close returns only when what it closes is really gone, within its bound
    Given the fixed version of "phases"
    When a phase is left by a result
    Then its CLI is gone when the phase is over
    And that takes less than 15 seconds

  @S3.3 @as_reported
  Scenario: S3.3 as reported, the phase is over and its CLI is not
    Given the reported version of "phases"
    When a phase is left by a result
    Then its CLI outlives the phase

  @S3.4
  Scenario: S3.4 Clean-up completes despite repeated cancels; then the cancel propagates
    Given the fixed version of "phases"
    When a phase is left by a second cancel
    Then its CLI is gone when the phase is over
    And a cancel is raised to its sender

  @S3.5
  Scenario: S3.5 Exactly one clean-up per resource, also when two closers overlap
    Given the fixed version of "phases"
    When two closers overlap
    Then it is closed once

  @S3.6
  Scenario: S3.6 Operational errors always surface, whatever their text, from any depth
    Given the fixed version of "phases"
    When the CLI fails
    Then its error is raised

  @S3.6
  Scenario: S3.6 Clean-up errors are known by where they were raised
    Given the fixed version of "phases"
    When leaving a session fails
    Then it is known as an error of the clean-up, and surfaces

  @S3.6
  Scenario: S3.6 and are attached to operational ones
    Given the fixed version of "phases"
    When using a session fails, and leaving it as well
    Then both surface, each known by where it was raised

  @S3.7
  Scenario: S3.7 Verification says by name what is left
    Given the fixed version of "phases"
    When a resource cannot be closed
    Then it is named: what it is, where it was created, where it waits

  @S3.7
  Scenario: S3.7 or that nothing is
    Given the fixed version of "phases"
    When a resource is tracked
    Then it is verified that nothing is left

  # The thousand are run by `handfast stress examples.phases.real:timed_out -n 1000`.
  @S3.8 @real
  Scenario: S3.8 Cancelled operations: no growth in tasks, descriptors, children, threads
    Given the fixed version of "phases"
    When 20 phases are timed out, or cancelled, with real parts
    Then nothing grows

  # --- the real agent ----------------------------------------------------------------------------

  @real
  Scenario: A real CLI and a real search engine, and nothing is leaked
    Given the fixed version of "phases"
    When it runs with its real parts
    Then nothing is leaked

  @real @as_reported
  Scenario: as reported, a CLI is leaked
    Given the reported version of "phases"
    When it runs with its real parts
    Then something is leaked

  @real @as_proposed
  Scenario: with the report's fix, a CLI is leaked as well
    Given the proposed version of "phases"
    When it runs with its real parts
    Then something is leaked

  @as_reported
  Scenario: as reported, check finds it in the source
    Given the reported version of "phases"
    When its code is checked
    Then check reports a finding

  Scenario: Check reports nothing in the fixed program
    Given the fixed version of "phases"
    When its code is checked
    Then check reports nothing
