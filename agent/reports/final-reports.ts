// Delivers the final reports of an agent that stops: the machine may be stopping, so the next agent may never start.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { OpenStreams } from './open-streams.ts'
import { deliverReports, type ReportDeps } from './routes.ts'

/**
 * How long a stopping agent waits for the exits of detached commands and of coding agents. Longer than TERMINATE_GRACE_MS
 * of synchronous commands.
 */
export const EXITS_TIMEOUT_MS = 2_500
/** How long it waits for the final reports to be acknowledged. Shorter than the provider's grace period. */
const FINAL_REPORTS_TIMEOUT_MS = 4_000

export type FinalReportsDeps = Pick<ReportDeps, 'spool' | 'flushRecorders'> & {
  openStreams: OpenStreams
  /** Resolves when the spool has the exits of all commands, which exit because the agent or its machine stops. */
  waitForExits(): Promise<void>
  log: Pick<Logger, 'warn'>
}

/** Resolves when the coordinator has acknowledged all reports, or cannot do so now. */
export async function deliverFinalReports(deps: FinalReportsDeps): Promise<void> {
  const { openStreams, waitForExits, log } = deps
  const signal = AbortSignal.timeout(FINAL_REPORTS_TIMEOUT_MS)
  const deliver = async () => {
    await Promise.race([waitForExits(), sleep(EXITS_TIMEOUT_MS, undefined, { ref: false })])
    await deliverReports(deps, signal)
  }
  // The coordinator is disconnected, or cannot store reports now.
  const noStream = openStreams.waitUntilNone(signal).then(() => {
    throw new Error('the coordinator does not read reports')
  })
  await Promise.race([deliver(), noStream]).catch((err: unknown) =>
    log.warn({ err }, 'the coordinator did not acknowledge the final reports; the next agent sends them'),
  )
}
