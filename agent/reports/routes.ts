// GET /reports streams heartbeats and spooled reports to the coordinator; POST /reports/ack acknowledges reports.
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Vitals } from '../../shared/api/boxes.ts'
import { type Heartbeat, reportAck } from '../../shared/api/reports.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { type Cursor, type Spool, START_CURSOR } from './spool.ts'

export type ReportDeps = {
  spool: Spool
  vitals(): Promise<Vitals>
  log: Logger
  clock: Clock
  heartbeatMs?: number
}

export function reportRoutes(app: FastifyInstance, deps: ReportDeps): void {
  app.get('/reports', { exposeHeadRoute: false }, (_request, reply) => {
    const closed = new AbortController()
    reply.raw.once('close', () => closed.abort())
    return reply
      .type('application/x-ndjson')
      .send(Readable.from(streamReports(deps, closed.signal), STREAM_OPTIONS))
  })

  app.post('/reports/ack', async (request, reply) => {
    const ack = reportAck.safeParse(request.body)
    if (!ack.success) throw new ApiError('bad_request', 'The body must be {epoch, seq}.')
    if (!(await deps.spool.acknowledge(ack.data))) {
      throw new ApiError('bad_request', 'The acknowledged reports are not from this spool.')
    }
    return reply.status(204).send()
  })
}

/** Buffers about one chunk: later reports stay on disk until the reader requests them. */
const STREAM_OPTIONS = { objectMode: false, highWaterMark: 64 * 1024 }

/**
 * Yields a heartbeat immediately and then every `heartbeatMs`, and reports from the spool: the stored ones first, then new
 * ones as they are appended. For a reader that stalls, only one chunk is buffered and no heartbeats accumulate.
 */
async function* streamReports(deps: ReportDeps, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { spool, clock, heartbeatMs = 10_000 } = deps
  let cursor: Cursor = START_CURSOR
  let nextHeartbeat = 0
  while (!signal.aborted) {
    if (performance.now() >= nextHeartbeat) {
      nextHeartbeat = performance.now() + heartbeatMs
      const line = await createHeartbeatLine(deps, clock)
      if (line !== null) yield line
    }
    // Subscribe before reading, so that a report appended in between is not missed.
    const waiting = new AbortController()
    const timer = setTimeout(() => waiting.abort(), Math.max(0, nextHeartbeat - performance.now()))
    const appended = spool.waitForReport(AbortSignal.any([signal, waiting.signal])).catch(() => undefined)
    try {
      const found = await spool.read(cursor)
      if (found === null) {
        await appended
        continue
      }
      cursor = found.next
      yield found.lines
    } finally {
      clearTimeout(timer)
      waiting.abort()
    }
  }
}

async function createHeartbeatLine({ vitals, log }: ReportDeps, clock: Clock): Promise<Buffer | null> {
  try {
    const heartbeat: Heartbeat = { type: 'heartbeat', at: clock.now(), vitals: await vitals() }
    return Buffer.from(`${JSON.stringify(heartbeat)}\n`)
  } catch (error) {
    log.warn({ err: error }, 'failed to sample vitals; heartbeat skipped')
    return null
  }
}
