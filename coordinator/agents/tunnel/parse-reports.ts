// Parses the lines of a report stream. The agent is untrusted: the size and the schema of each line are checked.
import type { Logger } from 'pino'
import {
  type ListeningPort,
  listeningTuplesSchema,
  MAX_LISTENING_PORTS,
  toListeningPort,
} from '../../../shared/api/process-snapshots.ts'
import {
  type DurableReport,
  durableReportSchema,
  type Heartbeat,
  type ListenersLine,
  type ReportLine,
  reportLineSchema,
} from '../../../shared/api/reports.ts'
import { BoundedJsonError, parseBoundedJson } from '../../../shared/bounded-json.ts'
import { validationMessage } from '../../../shared/validation-message.ts'

export type SequencedReport = { seq: number; report: DurableReport }

/** Reports of one epoch. `seq` is the last number, also when that report was skipped. */
export type ReportBatch = { epoch: string; seq: number; reports: SequencedReport[] }

export type GroupedLines = {
  /** The last heartbeat and the last list of ports: only the latest ones matter. */
  heartbeat?: Heartbeat
  listeners?: ListenersLine
  batches: ReportBatch[]
}

/** Parsing these takes about a millisecond. */
export const MAX_BATCH_LINES = 128

const MAX_LOGGED_TYPES = 16
/** A sample of 16 file systems and 16 interfaces has 320. Leaves room for reports of a newer agent. */
const MAX_LINE_TOKENS = 512
const MAX_PORTS_TOKENS = 5 * MAX_LISTENING_PORTS

/** A protocol violation. */
export class InvalidReportError extends Error {}

export function groupLines(lines: readonly ReportLine[], parseReport: ReportParser): GroupedLines {
  const grouped: GroupedLines = { batches: [] }
  for (const line of lines) {
    if (line.type === 'heartbeat') {
      grouped.heartbeat = line
      continue
    }
    if (line.type === 'listeners') {
      grouped.listeners = line
      continue
    }
    let batch = grouped.batches.at(-1)
    if (batch?.epoch !== line.epoch) {
      batch = { epoch: line.epoch, seq: 0, reports: [] }
      grouped.batches.push(batch)
    }
    batch.seq = line.seq
    const report = parseReport(line.report)
    if (report !== undefined) batch.reports.push({ seq: line.seq, report })
  }
  return grouped
}

/** Throws InvalidReportError. */
export function parseLine(text: string): ReportLine {
  const parsed = reportLineSchema.safeParse(parseJson(text), { reportInput: true })
  if (!parsed.success) throw new InvalidReportError(validationMessage(parsed.error.issues, 'report'))
  return parsed.data
}

/** Throws InvalidReportError. */
export function parsePorts({ ports }: ListenersLine): ListeningPort[] {
  const parsed = listeningTuplesSchema.safeParse(parseJson(ports, MAX_PORTS_TOKENS), { reportInput: true })
  if (!parsed.success) throw new InvalidReportError(validationMessage(parsed.error.issues, 'listeners'))
  return parsed.data.map(toListeningPort)
}

function parseJson(text: string, maxTokens = MAX_LINE_TOKENS): unknown {
  try {
    return parseBoundedJson(text, maxTokens)
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
    throw new InvalidReportError(`a report ${error.message}`)
  }
}

export type ReportParser = (report: ReportOf<ReportLine>) => DurableReport | undefined
type ReportOf<L> = L extends { report: infer R } ? R : never

/**
 * Parses a report; undefined for an unknown type (a newer agent) or an invalid one. Such a report is skipped and
 * acknowledged, because the agent would resend it indefinitely. Each type is logged once per parser.
 */
export function createReportParser(boxId: string, log: Pick<Logger, 'warn'>): ReportParser {
  const logged = new Set<string>()
  return (report) => {
    const parsed = durableReportSchema.safeParse(report, { reportInput: true })
    if (parsed.success) return parsed.data
    const type = report.type.slice(0, 64)
    if (!logged.has(type) && logged.size < MAX_LOGGED_TYPES) {
      logged.add(type)
      log.warn(
        { boxId, type, problem: validationMessage(parsed.error.issues, 'report') },
        'skipping reports of a box',
      )
    }
    return undefined
  }
}
