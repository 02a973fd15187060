// POST /reports/next returns heartbeats, listening ports and spooled reports, and acknowledges those of the last response;
// POST /reports/flush waits for the acknowledgement of all.
import { nextReportsSchema, type ReportAck } from '../../shared/api/next-reports.ts'
import { ApiError } from '../../shared/errors.ts'
import type { JsonRouter } from '../requests/json-routes.ts'
import { validateRequest } from '../validate-request.ts'
import { NextReports } from './next-reports.ts'
import { createOpenStreams, type OpenStreams } from './open-streams.ts'
import { type ReportStreamDeps, streamReports } from './stream-reports.ts'

export type ReportDeps = ReportStreamDeps & {
  /** Writes what the recorders have not reported yet to the spool. */
  flushRecorders(): Promise<void>
  /** Called with the coordinator's time, in milliseconds since the epoch, when an acknowledgement arrives. */
  onCoordinatorTime?(now: number): void
  openStreams?: OpenStreams
  /** Closed by the caller when the coordinator disconnects. */
  nextReports?: NextReports
  /** Called when the coordinator opens a stream. */
  onOpen?(): void
}

export function reportRoutes(router: JsonRouter, deps: ReportDeps): void {
  const { openStreams = createOpenStreams() } = deps
  const { nextReports = new NextReports((signal) => streamReports(deps, signal), openStreams) } = deps

  async function acknowledge(ack: ReportAck): Promise<void> {
    if (ack.now !== undefined) deps.onCoordinatorTime?.(ack.now)
    if (!(await deps.spool.acknowledge(ack))) {
      throw new ApiError('bad_request', 'The acknowledgement is not for this spool: epoch or seq is unknown.')
    }
  }

  router.add('POST', '/reports/next', async (request) => {
    const { isFirst, acks } = validateRequest(nextReportsSchema, request.body)
    for (const ack of acks) await acknowledge(ack)
    if (isFirst) deps.onOpen?.()
    return nextReports.read(isFirst, request.signal)
  })

  router.add('POST', '/reports/flush', ({ signal }) => deliverReports(deps, signal))
}

/**
 * Resolves when the coordinator has acknowledged the reports on everything that has happened so far. Rejects when the
 * signal aborts.
 */
export async function deliverReports(
  { spool, flushRecorders }: Pick<ReportDeps, 'spool' | 'flushRecorders'>,
  signal: AbortSignal,
): Promise<void> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  aborted.catch(() => undefined)
  signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  await Promise.race([flushRecorders(), aborted])
  await spool.waitForAcknowledgement(signal)
}
