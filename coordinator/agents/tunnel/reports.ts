// Reads the agents' reports, parses them line by line and acknowledges them after the commit.
import { EventEmitter } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Vitals } from '../../../shared/api/boxes.ts'
import type { NextReports, ReportAck } from '../../../shared/api/next-reports.ts'
import type { ListeningPort } from '../../../shared/api/process-snapshots.ts'
import type { Clock } from '../../../shared/clock.ts'
import { TUNNEL_LIMITS } from '../../../shared/limits.ts'
import type { BoxLimits } from './box-limits.ts'
import { createLineSplitter } from './line-splitter.ts'
import {
  createLineParser,
  groupLines,
  InvalidReportError,
  type LineParser,
  MAX_BATCH_LINES,
  parsePorts,
  type SequencedReport,
} from './parse-reports.ts'
import type { Session } from './session.ts'

export type Ingest = {
  /**
   * Commits reports that arrived together, in order. After a disconnect the same (box, epoch, seq) may be passed again; it
   * must be ignored. Resolves after the commit: the agent then deletes the reports.
   */
  apply(boxId: string, epoch: string, reports: SequencedReport[]): Promise<void>
  /** @param at milliseconds since the epoch, by the box's clock */
  heartbeat(boxId: string, vitals: Vitals, at: number): void
  /** All listening ports of the box, after a change or a reconnect. */
  listeners(boxId: string, ports: ListeningPort[]): void
}

export type ReportStreamOptions = {
  log: Logger
  clock: Clock
  ingest: Ingest
  limits: Pick<BoxLimits, 'countLines'>
  /** Delay before the stream is reopened on the same tunnel: doubles from `first` to `max`. */
  retryMs?: { first: number; max: number }
}

/** The agent responds with a heartbeat after 10 s, if not with reports before. */
const POLL_TIMEOUT_MS = 60_000
/** A chunk of one short line counts as this many bytes, because it costs a request. */
const MIN_CHUNK_BYTES = 32 * 1024
/** Agents send chunks of 64 KiB, and one line of at most 256 KiB where that is longer. */
const MAX_CHUNK_BYTES = 1024 * 1024
/** One failure may be of a stream that was open before the flush. */
const MAX_FLUSH_FAILURES = 2

export type ReportReader = {
  /**
   * Reads until the agent says that its reports are acknowledged, without the delay before a retry. Rejects with
   * box_unreachable after `ms`, and earlier when reading fails repeatedly, because the reports cannot be stored now.
   */
  flush(ms: number): Promise<void>
}

/** Reads reports until the session retires. */
export function startReportReader(session: Session, options: ReportStreamOptions): ReportReader {
  const { log } = options
  const { boxId, generation, retiring } = session
  const { first, max } = options.retryMs ?? { first: 500, max: 30_000 }
  let waitMs = first
  /** Aborts the delay before the next retry. */
  let retryNow = new AbortController()
  const failures = new EventEmitter<{ failure: [error: unknown] }>().setMaxListeners(0)

  async function readUntilRetired(): Promise<void> {
    while (!retiring.aborted) {
      try {
        await pollReports(session, options, () => {
          waitMs = first
        })
      } catch (error) {
        if (retiring.aborted) return
        // The agent has violated the protocol.
        if (error instanceof InvalidReportError) return session.destroy(error.message)
        log.warn({ err: error, boxId, generation }, 'report stream failed; will reopen it')
        failures.emit('failure', error)
      }
      retryNow = new AbortController()
      const signal = AbortSignal.any([retiring, retryNow.signal])
      await sleep(waitMs, undefined, { signal, ref: false }).catch(() => undefined)
      waitMs = Math.min(max, waitMs * 2)
    }
  }
  void readUntilRetired()

  return {
    async flush(ms) {
      waitMs = first
      retryNow.abort()
      const failed = new AbortController()
      let failureCount = 0
      const onFailure = (error: unknown) => {
        failureCount += 1
        if (failureCount === MAX_FLUSH_FAILURES) failed.abort(error)
      }
      failures.on('failure', onFailure)
      const signal = AbortSignal.any([retiring, failed.signal])
      try {
        const call = { method: 'POST', path: '/reports/flush', signal, timeoutMs: ms } as const
        const { status } = await session.call(call)
        if (status >= 300) throw new Error(`POST /reports/flush returned status ${status}`)
      } finally {
        failures.off('failure', onFailure)
      }
    },
  }
}

/**
 * Requests one chunk of lines after the other, until the session retires. Rejects when a request or a commit fails.
 * @param onCommit called after each commit
 */
async function pollReports(
  session: Session,
  options: ReportStreamOptions,
  onCommit: () => void,
): Promise<void> {
  const readChunk = createChunkReader(session, options)
  let request: NextReports = { isFirst: true, acks: [] }
  while (!session.retiring.aborted) {
    const { status, body } = await session.callForReports({
      method: 'POST',
      path: '/reports/next',
      body: JSON.stringify(request),
      signal: session.retiring,
      timeoutMs: POLL_TIMEOUT_MS,
      maxBytes: () => MAX_CHUNK_BYTES,
    })
    if (status !== 200) throw new Error(`POST /reports/next returned status ${status}`)
    request = { isFirst: false, acks: [] }
    for await (const ack of readChunk(body)) {
      request.acks.push(ack)
      onCommit()
    }
  }
}

/** Returns a function that commits the lines of consecutive chunks, and yields their acknowledgements. */
function createChunkReader(session: Session, options: ReportStreamOptions) {
  const { log, limits } = options
  const splitter = createLineSplitter(TUNNEL_LIMITS.reportBytes)
  const parseLine = createLineParser(session.boxId, log)
  return async function* (chunk: Buffer): AsyncGenerator<ReportAck> {
    const lines = splitter.push(chunk)
    if (lines === null)
      throw new InvalidReportError(`a report is longer than ${TUNNEL_LIMITS.reportBytes} bytes`)
    const delayMs = limits.countLines(session.boxId, lines.length, Math.max(chunk.length, MIN_CHUNK_BYTES))
    for (let i = 0; i < lines.length; i += MAX_BATCH_LINES) {
      yield* handleLines(session, options, lines.slice(i, i + MAX_BATCH_LINES), parseLine)
      // Other boxes come first: without a report to commit, the loop would not wait for anything.
      await setImmediate()
    }
    if (delayMs > 0) await sleep(delayMs, undefined, { signal: session.retiring, ref: false })
  }
}

async function* handleLines(
  session: Session,
  { ingest, clock }: ReportStreamOptions,
  lines: string[],
  parseLine: LineParser,
): AsyncGenerator<ReportAck> {
  const { heartbeat, listeners, batches } = groupLines(lines.map(parseLine))
  if (heartbeat !== undefined) ingest.heartbeat(session.boxId, heartbeat.vitals, heartbeat.at)
  if (listeners !== undefined) ingest.listeners(session.boxId, parsePorts(listeners))
  for (const { epoch, seq, reports } of batches) {
    if (reports.length > 0) await ingest.apply(session.boxId, epoch, reports)
    yield { epoch, seq, now: clock.now() }
  }
}
