// Reduces a box's reports on one command to the updated row and the bytes to add to its output. Pure.
import { COMMAND_STREAMS, type CommandStream } from '../../../shared/api/commands.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'
import type { CommandClaims } from './command-claims.ts'
import {
  mergeSegments,
  type OutputSegment,
  type OutputUpdate,
  type RetainedRange,
  retainedRange,
} from './output-chunk-store.ts'
import type { CommandRow } from './store.ts'

type StartedReport = Extract<CommandReport, { type: 'command.started' }>
type FinishedReport = Extract<CommandReport, { type: 'command.finished' }>

export type RecordUpdate = {
  row: CommandRow
  output: Record<CommandStream, { before: RetainedRange; update: OutputUpdate | null }>
}

/**
 * @param reports on one command, in order. Each may have been applied before.
 * @param keepOutput false: discards output, also of a record whose earlier output is stored
 */
export function reduceReports(
  initial: CommandRow,
  reports: readonly CommandReport[],
  keepOutput = true,
): RecordUpdate {
  let row = initial
  const segments: Record<CommandStream, OutputSegment[]> = { stdout: [], stderr: [] }
  const streamLengths = { stdout: 0, stderr: 0 }
  for (const report of reports) {
    switch (report.type) {
      case 'command.started':
        // The command was marked lost too early: it still runs on the box.
        if (row.status === 'lost' && row.mode === 'detached') row = { ...row, status: 'running' }
        break
      case 'command.output':
        segments[report.stream].push({ offset: report.offset, data: Buffer.from(report.data, 'base64') })
        break
      case 'command.finished':
        // A reported exit is never rewritten. `lost` is: it means that the exit was not reported.
        if (row.status !== 'running' && row.status !== 'lost') break
        row = {
          ...row,
          status: report.status,
          exit_code: report.exitCode,
          signal: report.signal,
          finished_at: report.finishedAt,
        }
        for (const stream of COMMAND_STREAMS) {
          const last = finalSegment(report, stream)
          if (last !== null) segments[stream].push(last)
          streamLengths[stream] = report[`${stream}Bytes`]
        }
    }
  }
  const updateStream = (stream: CommandStream) => {
    const before = retainedRange(row, stream)
    const update = mergeSegments(
      before,
      row.output_kept && keepOutput ? segments[stream] : [],
      streamLengths[stream],
    )
    const { start, bytes } = update?.retained ?? before
    row = { ...row, [`${stream}_start`]: start, [`${stream}_bytes`]: bytes }
    return { before, update }
  }
  const output = { stdout: updateStream('stdout'), stderr: updateStream('stderr') }
  return { row, output }
}

/** The last bytes of a stream that a finished report carries. */
function finalSegment(report: FinishedReport, stream: CommandStream): OutputSegment | null {
  const base64 = report[stream]
  if (base64 === undefined) return null
  const data = Buffer.from(base64, 'base64')
  const end = report[`${stream}Bytes`]
  return data.length <= end ? { offset: end - data.length, data } : null
}

/** The row of a new record: from the verified claims, and from the report only what the claims do not contain. */
export function newCommandRow(report: StartedReport, claims: CommandClaims): CommandRow {
  const { keepOutput, actor } = claims
  return {
    id: claims.commandId,
    box_id: claims.boxId,
    mode: claims.mode,
    source: claims.source,
    command: keepOutput ? report.command : null,
    command_truncated: keepOutput && report.commandTruncated ? 1 : 0,
    cwd: keepOutput ? report.cwd : null,
    status: 'running',
    exit_code: null,
    signal: null,
    pid: report.pid,
    requested_at: claims.requestedAt,
    started_at: report.startedAt,
    finished_at: null,
    actor_kind: actor.kind,
    actor_user_id: actor.userId,
    actor_token_id: actor.tokenId,
    output_kept: keepOutput ? 1 : 0,
    stdout_bytes: 0,
    stdout_start: 0,
    stderr_bytes: 0,
    stderr_start: 0,
    deleted_at: null,
  }
}
