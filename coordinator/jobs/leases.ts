// Leases of stored jobs: a job with a valid lease is run by one coordinator only. Times are milliseconds since the epoch.
import type { Logger } from 'pino'
import type { Clock } from '../../shared/clock.ts'
import { INTERRUPTED } from './job-runner.ts'
import type { Leases } from './lease-store.ts'

export { createLeases, type Lease, UNTIL_CONNECTED } from './lease-store.ts'

type LeasedStep = {
  clock: Clock
  log: Pick<Logger, 'error'>
  id: string
  owner: string
  leaseMs: number
  /** Aborted with INTERRUPTED when the lease is lost. */
  controller: AbortController
}

/** Runs the step of a claimed job and renews the lease meanwhile. */
export async function runWithLease<T>(
  leases: Leases,
  { clock, log, id, owner, leaseMs, controller }: LeasedStep,
  step: () => Promise<T>,
): Promise<T> {
  const renewal = setInterval(() => {
    leases.renew(id, { owner, now: clock.now(), leaseMs }).then(
      (isRenewed) => isRenewed || controller.abort(INTERRUPTED),
      (err: unknown) => log.error({ err, id }, 'failed to renew a lease; will retry'),
    )
  }, leaseMs / 3)
  renewal.unref()
  try {
    return await step()
  } finally {
    clearInterval(renewal)
  }
}
