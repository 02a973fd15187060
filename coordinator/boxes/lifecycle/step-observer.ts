// Observes the steps of lifecycle jobs, for metrics and traces.
import type { Claim, StepResult } from './claim.ts'

export type StepObserver = {
  /** Runs the step. Rejects as `run()`; not with an Error: the step has been interrupted. */
  observe(claim: Claim, run: () => Promise<StepResult>): Promise<StepResult>
  /** @param isFinal the step is not retried */
  onFailure(claim: Claim, isFinal: boolean): void
  onJobComplete(op: Claim['op'], durationMs: number): void
}
