// What reports make of a record. Pure: the row as it becomes, and the bytes that are added to its output.
import { COMMAND_STREAMS, type CommandStream } from '../../shared/api/commands.ts'
import type { CommandReport } from '../../shared/api/reports.ts'
import { type Added, type Kept, keptOf, type Piece, planOutput } from './output-chunks.ts'
import type { Receipt } from './receipts.ts'
import type { CommandRow } from './store.ts'

type Started = Extract<CommandReport, { type: 'command.started' }>
type Finished = Extract<CommandReport, { type: 'command.finished' }>

export type Folded = {
  row: CommandRow
  output: Record<CommandStream, { before: Kept; added: Added | null }>
}

/** Reports on one command in their order; each may have come before. */
export function foldReports(before: CommandRow, reports: readonly CommandReport[]): Folded {
  let row = before
  const pieces: Record<CommandStream, Piece[]> = { stdout: [], stderr: [] }
  const ends = { stdout: 0, stderr: 0 }
  for (const report of reports) {
    switch (report.type) {
      case 'command.started':
        // It was given up too early: the box has it still.
        if (row.status === 'lost' && row.mode === 'detached') row = { ...row, status: 'running' }
        break
      case 'command.output':
        pieces[report.stream].push({ offset: report.offset, data: Buffer.from(report.data, 'base64') })
        break
      case 'command.finished':
        // An end that is known is never rewritten; one that was only presumed is.
        if (row.status !== 'running' && row.status !== 'lost') break
        row = {
          ...row,
          status: report.status,
          exit_code: report.exitCode,
          signal: report.signal,
          finished_at: report.finishedAt,
        }
        for (const stream of COMMAND_STREAMS) {
          const last = lastPiece(report, stream)
          if (last !== null) pieces[stream].push(last)
          ends[stream] = report[`${stream}Bytes`]
        }
    }
  }
  const fold = (stream: CommandStream) => {
    const kept = keptOf(row, stream)
    const added = planOutput(kept, row.output_kept ? pieces[stream] : [], ends[stream])
    const { start, bytes } = added?.kept ?? kept
    row = { ...row, [`${stream}_start`]: start, [`${stream}_bytes`]: bytes }
    return { before: kept, added }
  }
  const output = { stdout: fold('stdout'), stderr: fold('stderr') }
  return { row, output }
}

function lastPiece(report: Finished, stream: CommandStream): Piece | null {
  const text = report[stream]
  if (text === undefined) return null
  const data = Buffer.from(text, 'base64')
  const end = report[`${stream}Bytes`]
  return data.length <= end ? { offset: end - data.length, data } : null
}

/** The row that begins a record: what the receipt says, and of what the box says only what it alone can know. */
export function newRow(report: Started, receipt: Receipt): CommandRow {
  const { keepOutput, actor } = receipt
  return {
    id: receipt.commandId,
    box_id: receipt.boxId,
    mode: receipt.mode,
    source: receipt.source,
    command: keepOutput ? report.command : null,
    command_truncated: keepOutput && report.commandTruncated ? 1 : 0,
    cwd: keepOutput ? report.cwd : null,
    status: 'running',
    exit_code: null,
    signal: null,
    pid: report.pid,
    requested_at: receipt.requestedAt,
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
