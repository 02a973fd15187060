// What agents tell unasked: one long answer per tunnel, read line by line, acknowledged once it is committed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Vitals } from '../../shared/api/boxes.ts'
import {
  type DurableReport,
  durableReport,
  type Heartbeat,
  type ReportAck,
  type ReportLine,
  reportLine,
} from '../../shared/api/reports.ts'
import { TUNNEL_LIMITS } from '../../shared/limits.ts'
import { createLineSplitter } from './lines.ts'
import type { Session } from './session.ts'

export type SequencedReport = { seq: number; report: DurableReport }

export type Ingest = {
  /**
   * Commits reports that arrived together, in their order. May get the same (box, epoch, seq) again after a cut
   * and then does nothing with it. Resolved means committed: the box forgets them.
   */
  apply(boxId: string, epoch: string, reports: SequencedReport[]): Promise<void>
  /** @param at milliseconds since the epoch, by the clock of the box. */
  heartbeat(boxId: string, vitals: Vitals, at: number): void
}

export type FollowOptions = {
  log: Logger
  ingest: Ingest
  /** The wait before the stream is opened again while its tunnel lives: doubles from the first to the second. */
  retryMs?: { first: number; max: number }
}

/** A line that no agent of ours sends: its connection is ended. */
class BadReport extends Error {}

/** Follows the tunnel's reports until it ends. Never rejects. */
export async function followReports(session: Session, options: FollowOptions): Promise<void> {
  const { log } = options
  const { boxId, generation, retiring } = session
  const { first, max } = options.retryMs ?? { first: 500, max: 30_000 }
  let waitMs = first
  while (!retiring.aborted) {
    try {
      const lines = await readReports(session, options)
      if (lines > 0) waitMs = first
    } catch (error) {
      if (retiring.aborted) return
      if (error instanceof BadReport) return session.destroy(error.message)
      log.warn({ err: error, boxId, generation }, 'the stream of reports broke')
    }
    await sleep(waitMs, undefined, { signal: retiring, ref: false }).catch(() => undefined)
    waitMs = Math.min(max, waitMs * 2)
  }
}

/** Reads one stream to its end. Returns how many lines it held. */
async function readReports(session: Session, { ingest, log }: FollowOptions): Promise<number> {
  const { status, body } = await session.request({
    method: 'GET',
    path: '/reports',
    signal: session.retiring,
    headTimeoutMs: 30_000,
  })
  if (status !== 200) {
    body.destroy()
    throw new Error(`GET /reports answered ${status}`)
  }
  const splitter = createLineSplitter(TUNNEL_LIMITS.reportBytes)
  const pace = createPace()
  const known = createReportParser(session, log)
  let count = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const lines = splitter.push(chunk)
    if (lines === null) throw new BadReport(`a report is longer than ${TUNNEL_LIMITS.reportBytes} bytes`)
    count += lines.length
    await handleLines(session, ingest, lines, known)
    await pace(chunk.length)
  }
  return count
}

type ReportParser = (report: ReportOf<ReportLine>) => DurableReport | undefined
type ReportOf<L> = L extends { report: infer R } ? R : never

async function handleLines(
  session: Session,
  ingest: Ingest,
  lines: string[],
  known: ReportParser,
): Promise<void> {
  let heartbeat: Heartbeat | undefined
  const batches: { epoch: string; seq: number; reports: SequencedReport[] }[] = []
  for (const text of lines) {
    const line = parseLine(text)
    if (line.type === 'heartbeat') {
      heartbeat = line
      continue
    }
    let batch = batches.at(-1)
    if (batch?.epoch !== line.epoch) {
      batch = { epoch: line.epoch, seq: 0, reports: [] }
      batches.push(batch)
    }
    batch.seq = line.seq
    const report = known(line.report)
    if (report !== undefined) batch.reports.push({ seq: line.seq, report })
  }
  // Only the latest is worth anything.
  if (heartbeat !== undefined) ingest.heartbeat(session.boxId, heartbeat.vitals, heartbeat.at)
  for (const { epoch, seq, reports } of batches) {
    if (reports.length > 0) await ingest.apply(session.boxId, epoch, reports)
    await acknowledge(session, { epoch, seq })
  }
}

function parseLine(text: string): ReportLine {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new BadReport('a report is not JSON')
  }
  const parsed = reportLine.safeParse(json)
  if (!parsed.success) throw new BadReport(`a report is not valid: ${parsed.error.issues[0]?.message}`)
  return parsed.data
}

/**
 * What a report says, or undefined for one of a kind or form that is not ours: a newer agent's, or nonsense. It is
 * passed over and acknowledged, since the box would send it again for ever. Logged once a stream for each kind.
 */
function createReportParser({ boxId }: Session, log: Logger): ReportParser {
  const told = new Set<string>()
  return (report) => {
    const parsed = durableReport.safeParse(report)
    if (parsed.success) return parsed.data
    const type = report.type.slice(0, 64)
    if (!told.has(type) && told.size < MAX_TOLD) {
      told.add(type)
      log.warn({ boxId, type, problem: parsed.error.issues[0]?.message }, 'reports of a box are passed over')
    }
    return undefined
  }
}

const MAX_TOLD = 16

async function acknowledge(session: Session, ack: ReportAck): Promise<void> {
  const { status, body } = await session.request({
    method: 'POST',
    path: '/reports/ack',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(ack)),
    signal: session.retiring,
    headTimeoutMs: 30_000,
  })
  body.destroy()
  if (status >= 300) throw new Error(`POST /reports/ack answered ${status}`)
}

/** Reading slows down above this many bytes a second, after a burst: one box must not take all our time. */
const SUSTAINED_BYTES = 8 * 1024 * 1024
/** The output of eight commands at once, each with 2 MiB, as base64, and as much again. */
const BURST_BYTES = 48 * 1024 * 1024

function createPace(): (bytes: number) => Promise<void> {
  let budget = BURST_BYTES
  let last = performance.now()
  return async (bytes) => {
    const now = performance.now()
    budget = Math.min(BURST_BYTES, budget + ((now - last) / 1000) * SUSTAINED_BYTES) - bytes
    last = now
    if (budget < 0) await sleep((-budget / SUSTAINED_BYTES) * 1000, undefined, { ref: false })
  }
}
