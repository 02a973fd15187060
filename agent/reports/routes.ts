// What the agent tells: GET /reports, an answer without end, and the acknowledgement that lets reports be forgotten.
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Vitals } from '../../shared/api/boxes.ts'
import { type Heartbeat, reportAck } from '../../shared/api/reports.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { type Cursor, type Spool, START } from './spool.ts'

export type ReportDeps = {
  spool: Spool
  vitals(): Promise<Vitals>
  log: Logger
  clock: Clock
  heartbeatMs?: number
}

export function reportRoutes(app: FastifyInstance, deps: ReportDeps): void {
  app.get('/reports', { exposeHeadRoute: false }, (_request, reply) => {
    const ended = new AbortController()
    reply.raw.once('close', () => ended.abort())
    return reply.type('application/x-ndjson').send(Readable.from(reportStream(deps, ended.signal), READABLE))
  })

  app.post('/reports/ack', async (request, reply) => {
    const ack = reportAck.safeParse(request.body)
    if (!ack.success) throw new ApiError('bad_request', 'An acknowledgement is {epoch, seq}.')
    if (!(await deps.spool.acknowledge(ack.data))) {
      throw new ApiError('bad_request', 'That acknowledges reports this spool never held.')
    }
    return reply.status(204).send()
  })
}

/** One chunk ahead is enough: everything else stays on the disk until the reader has come to it. */
const READABLE = { objectMode: false, highWaterMark: 64 * 1024 }

/**
 * Kept reports as they are on the disk, then new ones as they come; a heartbeat at once and then on time. A reader
 * that does not read costs one chunk: heartbeats it missed are never made.
 */
async function* reportStream(deps: ReportDeps, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { spool, clock, heartbeatMs = 10_000 } = deps
  let cursor: Cursor = START
  let nextHeartbeat = 0
  while (!signal.aborted) {
    if (performance.now() >= nextHeartbeat) {
      nextHeartbeat = performance.now() + heartbeatMs
      const line = await heartbeatLine(deps, clock)
      if (line !== null) yield line
    }
    // Listening before looking: a report between the two would wait for the next.
    const idle = new AbortController()
    const timer = setTimeout(() => idle.abort(), Math.max(0, nextHeartbeat - performance.now()))
    const appended = spool.appended(AbortSignal.any([signal, idle.signal])).catch(() => undefined)
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
      idle.abort()
    }
  }
}

async function heartbeatLine({ vitals, log }: ReportDeps, clock: Clock): Promise<Buffer | null> {
  try {
    const heartbeat: Heartbeat = { type: 'heartbeat', at: clock.now(), vitals: await vitals() }
    return Buffer.from(`${JSON.stringify(heartbeat)}\n`)
  } catch (error) {
    log.warn({ err: error }, 'the vitals could not be read')
    return null
  }
}
