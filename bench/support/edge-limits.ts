// Settings of a coordinator for benchmarks.
import { limitsEnv } from '../../test/support/limits-env.ts'

/** Edge limits far above the spec's, because the benchmarks send more than 20 requests per second. */
export const RAISED_LIMITS = limitsEnv({
  edgeRequestsPerSecond: 1_000_000,
  edgeConcurrency: 1000,
  edgeStreams: 1000,
})
