// The delays between the attempts of a lifecycle step.
import { backoffDelay, fullJitter } from '../../shared/backoff.ts'

const SETTINGS = { baseMs: 500, maxMs: 60_000 }

/** Milliseconds to wait after `failedAttempts` failures (1 or more). The upper bound doubles from 1 s to 60 s. */
export const getStepRetryDelay = (failedAttempts: number): number =>
  backoffDelay(failedAttempts, SETTINGS, fullJitter, Math.random)
