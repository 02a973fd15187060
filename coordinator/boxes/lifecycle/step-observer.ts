// Observes the steps of lifecycle jobs, for metrics and traces.
import type { Claim, StepResult } from './claim.ts'

export type StepObserver = {
  /** Runs the step, and rejects with the reason of `run()`. A reason that is not an Error means that the step was interrupted. */
  observe(claim: Claim, run: () => Promise<StepResult>): Promise<StepResult>
  /** @param isFinal the step is not retried */
  onFailure(claim: Claim, isFinal: boolean): void
  onJobComplete(op: Claim['op'], durationMs: number): void
}
