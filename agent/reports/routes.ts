// GET /reports streams heartbeats, listening ports and spooled reports to the coordinator; POST /reports/ack acknowledges reports;
// POST /reports/flush waits for their acknowledgement.
import { type EventEmitter, once } from 'node:events'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Vitals } from '../../shared/api/boxes.ts'
import type { ListeningTuple } from '../../shared/api/process-snapshots.ts'
import { type Heartbeat, type ListenersLine, reportAckSchema } from '../../shared/api/reports.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import type { Listeners } from '../vitals/listeners.ts'
import { createOpenStreams, type OpenStreams } from './open-streams.ts'
import type { Cursor } from './segments.ts'
import { type Spool, START_CURSOR } from './spool.ts'

export type ReportDeps = {
  spool: Spool
  /** Returns the vitals of the last sample. */
  readVitals(): Vitals
  listeners: Pick<Listeners, 'current' | 'events'>
  /** After 'change', a heartbeat follows at once. */
  codingAgents?: { events: EventEmitter<{ change: [] }> }
  /** Writes what the recorders have not reported yet to the spool. */
  flushRecorders(): Promise<void>
  clock: Clock
  /** Called with the coordinator's time, in milliseconds since the epoch, when an acknowledgement arrives. */
  onCoordinatorTime?(now: number): void
  heartbeatIntervalMs?: number
  openStreams?: OpenStreams
  /** Called when the coordinator opens the stream. */
  onOpen?(): void
}

export function reportRoutes(app: FastifyInstance, deps: ReportDeps): void {
  const { openStreams = createOpenStreams() } = deps
  app.get('/reports', { exposeHeadRoute: false }, (_request, reply) => {
    const closeController = new AbortController()
    const onClose = openStreams.add()
    deps.onOpen?.()
    reply.raw.once('close', () => {
      onClose()
      closeController.abort()
    })
    return reply
      .type('application/x-ndjson')
      .send(Readable.from(streamReports(deps, closeController.signal), STREAM_OPTIONS))
  })

  app.post('/reports/ack', async (request, reply) => {
    const ack = reportAckSchema.safeParse(request.body)
    if (!ack.success) throw new ApiError('bad_request', 'The body must be a JSON object {epoch, seq}.')
    if (ack.data.now !== undefined) deps.onCoordinatorTime?.(ack.data.now)
    if (!(await deps.spool.acknowledge(ack.data))) {
      throw new ApiError('bad_request', 'The acknowledgement is not for this spool: epoch or seq is unknown.')
    }
    return reply.status(204).send()
  })

  app.post('/reports/flush', async (_request, reply) => {
    const closeController = new AbortController()
    reply.raw.once('close', () => closeController.abort())
    await deliverReports(deps, closeController.signal)
    return reply.status(204).send()
  })
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

/** Buffers about one chunk. Later reports stay on disk until the coordinator reads further. */
const STREAM_OPTIONS = { objectMode: false, highWaterMark: 64 * 1024 }

/**
 * Yields a heartbeat immediately and then every `heartbeatIntervalMs`, and the listening ports immediately and after each
 * change. In between, yields the reports of the spool: first the stored reports, then each new report. When the
 * coordinator stalls, only one chunk is buffered and no heartbeats accumulate.
 */
async function* streamReports(deps: ReportDeps, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { spool, clock, readVitals, listeners, heartbeatIntervalMs = 10_000 } = deps
  let cursor: Cursor = START_CURSOR
  let nextHeartbeat = 0
  let sentPorts: readonly ListeningTuple[] | null = null
  // A listener for the whole stream: changes while the coordinator stalls count too.
  const sendHeartbeatNow = () => {
    nextHeartbeat = 0
  }
  deps.codingAgents?.events.on('change', sendHeartbeatNow)
  signal.addEventListener('abort', () => deps.codingAgents?.events.off('change', sendHeartbeatNow))
  while (!signal.aborted) {
    if (performance.now() >= nextHeartbeat) {
      nextHeartbeat = performance.now() + heartbeatIntervalMs
      const heartbeat: Heartbeat = { type: 'heartbeat', at: clock.now(), vitals: readVitals() }
      yield toLine(heartbeat)
    }
    const ports = listeners.current()
    if (ports !== null && ports !== sentPorts) {
      sentPorts = ports
      yield toLine({ type: 'listeners', at: clock.now(), ports: JSON.stringify(ports) })
      continue
    }
    // Subscribe before reading, so that a report appended in between is not missed.
    const waitController = new AbortController()
    const timer = setTimeout(() => waitController.abort(), Math.max(0, nextHeartbeat - performance.now()))
    const waitSignal = AbortSignal.any([signal, waitController.signal])
    const nextChange = Promise.race([
      spool.waitForReport(waitSignal),
      once(listeners.events, 'change', { signal: waitSignal }),
      ...(deps.codingAgents ? [once(deps.codingAgents.events, 'change', { signal: waitSignal })] : []),
    ]).catch(() => undefined)
    try {
      const batch = await spool.read(cursor)
      if (batch === null) {
        await nextChange
        continue
      }
      cursor = batch.next
      yield batch.lines
    } finally {
      clearTimeout(timer)
      waitController.abort()
    }
  }
}

const toLine = (value: Heartbeat | ListenersLine): Buffer => Buffer.from(`${JSON.stringify(value)}\n`)
