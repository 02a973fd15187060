// Parses the lines of a report stream. The agent is untrusted: the size and the schema of each line are checked.
import type { Logger } from 'pino'
import type { z } from 'zod'
import {
  type ListeningPort,
  listeningTuplesSchema,
  toListeningPort,
} from '../../../shared/api/process-snapshots.ts'
import {
  type DurableReport,
  durableReportSchema,
  type Heartbeat,
  type ListenersLine,
  reportLineSchema,
  reportTypeSchema,
} from '../../../shared/api/reports.ts'
import { BoundedJsonError, parseBoundedJson } from '../../../shared/bounded-json.ts'
import { MAX_LISTENING_PORTS } from '../../../shared/report-limits.ts'
import { validationMessage } from '../../../shared/validation-message.ts'

/** `report` is undefined for a report that is skipped: of an unknown type (a newer agent), or invalid. */
export type ReportLine =
  | Heartbeat
  | ListenersLine
  | { type: 'report'; epoch: string; seq: number; report: DurableReport | undefined }

/** Throws InvalidReportError. */
export type LineParser = (text: string) => ReportLine

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

export function groupLines(lines: readonly ReportLine[]): GroupedLines {
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
    const { seq, report } = line
    batch.seq = seq
    if (report !== undefined) batch.reports.push({ seq, report })
  }
  return grouped
}

/** Throws InvalidReportError. */
export const parsePorts = ({ ports }: ListenersLine): ListeningPort[] =>
  parse(listeningTuplesSchema, parseJson(ports, MAX_PORTS_TOKENS), 'listeners').map(toListeningPort)

/** Throws InvalidReportError. */
function parse<T>(schema: z.ZodType<T>, value: unknown, name = 'report'): T {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (!parsed.success) throw new InvalidReportError(validationMessage(parsed.error.issues, name))
  return parsed.data
}

function parseJson(text: string, maxTokens = MAX_LINE_TOKENS): unknown {
  try {
    return parseBoundedJson(text, maxTokens)
  } catch (error) {
    if (!(error instanceof BoundedJsonError)) throw error
    throw new InvalidReportError(`a report ${error.message}`)
  }
}

/**
 * A skipped report is acknowledged, because the agent would resend it indefinitely. Each type of skipped reports is logged
 * once per parser.
 */
export function createLineParser(boxId: string, log: Pick<Logger, 'warn'>): LineParser {
  const logged = new Set<string>()

  function parseReport(report: unknown): DurableReport | undefined {
    const parsed = durableReportSchema.safeParse(report, { reportInput: true })
    if (parsed.success) return parsed.data
    const type = parse(reportTypeSchema, report).type.slice(0, 64)
    if (!logged.has(type) && logged.size < MAX_LOGGED_TYPES) {
      logged.add(type)
      log.warn(
        { boxId, type, problem: validationMessage(parsed.error.issues, 'report') },
        'skipping reports of a box',
      )
    }
    return undefined
  }

  return (text) => {
    const line = parse(reportLineSchema, parseJson(text))
    return line.type === 'report' ? { ...line, report: parseReport(line.report) } : line
  }
}
