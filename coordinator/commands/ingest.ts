// What a box reports on its commands, made into records: folded in memory per command, then written once.
import type { Logger } from 'pino'
import type { CommandStream } from '../../shared/api/commands.ts'
import type { CommandReport } from '../../shared/api/reports.ts'
import type { Trx } from '../db/transaction.ts'
import { appendOutput, type Kept, type Piece, removeChunks } from './output-chunks.ts'
import { hashKept, type Receipt, type Receipts } from './receipts.ts'
import { type CommandRow, commandById, insertCommand, updateCommand } from './store.ts'

type Started = Extract<CommandReport, { type: 'command.started' }>
type Finished = Extract<CommandReport, { type: 'command.finished' }>

export type CommandIngest = {
  /** Must have resolved before `apply`: inside the transaction it is too late to fetch anything. */
  load(): Promise<void>
  /**
   * Writes what the box reports, in order. What is forged, foreign or about a command that is not (any more) in the
   * history is left out with a line in the log: it must not stop what comes behind it.
   */
  apply(trx: Trx, boxId: string, reports: readonly CommandReport[]): Promise<Applied>
}

export type Applied = {
  /** Commands whose record is as the answer of the edge said it would be: it runs detached, or it has ended. */
  arrived: string[]
  /** Bytes of output that were written. */
  outputBytes: number
}

/** A record as the reports so far make it. */
type Draft = {
  row: CommandRow
  changed: boolean
  pieces: Record<CommandStream, Piece[]>
  finished: Finished | undefined
}

export function createCommandIngest(receipts: Receipts, log: Pick<Logger, 'warn'>): CommandIngest {
  function acceptedReceipt(boxId: string, report: Started): Receipt | null {
    const { commandId, command, commandTruncated, cwd } = report
    const receipt = receipts.open(report.receipt)
    const refuse = (reason: string) => {
      log.warn({ boxId, commandId, reason }, 'a record of a command was refused')
      return null
    }
    if (receipt === null) return refuse('its receipt is not ours')
    if (receipt.boxId !== boxId) return refuse('its receipt is for another box')
    if (receipt.commandId !== commandId) return refuse('its receipt is for another command')
    if (!receipt.keepOutput) return receipt
    if (command === null || cwd === null || hashKept(command, commandTruncated, cwd) !== receipt.hash) {
      return refuse('it is not the command that was asked for')
    }
    return receipt
  }

  async function apply(trx: Trx, boxId: string, reports: readonly CommandReport[]): Promise<Applied> {
    const drafts = new Map<string, Draft | null>()
    const draftOf = async (commandId: string): Promise<Draft | null> => {
      const known = drafts.get(commandId)
      if (known !== undefined) return known
      const row = await commandById(trx, commandId)
      const ours = row?.box_id === boxId && row.deleted_at === null
      const draft = ours ? newDraft(row) : null
      drafts.set(commandId, draft)
      return draft
    }
    const arrived: string[] = []
    for (const report of reports) {
      const { commandId } = report
      if (report.type === 'command.started') {
        if (!drafts.get(commandId)) {
          const receipt = acceptedReceipt(boxId, report)
          if (receipt === null) continue
          const row = newRow(report, receipt)
          drafts.delete(commandId)
          if (await insertCommand(trx, row)) drafts.set(commandId, newDraft(row))
        }
        const draft = await draftOf(commandId)
        if (draft === null) continue
        const { status, mode } = draft.row
        // It was given up too early: the box has it still.
        if (status === 'lost' && mode === 'detached') change(draft, { status: 'running' })
        if (mode === 'detached') arrived.push(commandId)
        continue
      }
      const draft = await draftOf(commandId)
      if (draft === null) continue
      if (report.type === 'command.output') {
        draft.pieces[report.stream].push({ offset: report.offset, data: Buffer.from(report.data, 'base64') })
        continue
      }
      finish(draft, report)
      arrived.push(commandId)
    }
    let outputBytes = 0
    for (const draft of drafts.values()) if (draft !== null) outputBytes += await write(trx, draft)
    return { arrived, outputBytes }
  }

  return { load: receipts.load, apply }
}

const newDraft = (row: CommandRow): Draft => ({
  row,
  changed: false,
  pieces: { stdout: [], stderr: [] },
  finished: undefined,
})

function change(draft: Draft, changes: Partial<CommandRow>): void {
  draft.row = { ...draft.row, ...changes }
  draft.changed = true
}

/** An end that is known is never rewritten; one that was only presumed is. */
function finish(draft: Draft, report: Finished): void {
  const { status } = draft.row
  if (status !== 'running' && status !== 'lost') return
  const { stdout, stderr, stdoutBytes, stderrBytes, exitCode, signal, finishedAt } = report
  for (const [stream, text, bytes] of [
    ['stdout', stdout, stdoutBytes],
    ['stderr', stderr, stderrBytes],
  ] as const) {
    if (text === undefined) continue
    const data = Buffer.from(text, 'base64')
    if (data.length <= bytes) draft.pieces[stream].push({ offset: bytes - data.length, data })
  }
  draft.finished = report
  change(draft, { status: report.status, exit_code: exitCode, signal, finished_at: finishedAt })
}

/** Returns how many bytes of output it wrote. */
async function write(trx: Trx, draft: Draft): Promise<number> {
  const { row, finished } = draft
  const changes: Partial<CommandRow> = {}
  let written = 0
  for (const stream of ['stdout', 'stderr'] as const) {
    const [bytesColumn, startColumn] = [`${stream}_bytes`, `${stream}_start`] as const
    const before: Kept = { start: row[startColumn], bytes: row[bytesColumn] }
    const pieces = row.output_kept ? draft.pieces[stream] : []
    const kept = await appendOutput(trx, row.id, stream, before, pieces)
    const end = finished?.[`${stream}Bytes`] ?? 0
    // Its last bytes never came, so what is kept is not its end.
    if (end > kept.bytes) {
      if (kept.start < kept.bytes) await removeChunks(trx, row.id, stream)
      kept.start = end
      kept.bytes = end
    }
    if (kept.bytes !== before.bytes || kept.start !== before.start) {
      changes[bytesColumn] = kept.bytes
      changes[startColumn] = kept.start
      written += kept.bytes - Math.max(kept.start, before.bytes)
    }
  }
  const { status, exit_code, signal, finished_at } = row
  if (draft.changed) Object.assign(changes, { status, exit_code, signal, finished_at })
  if (Object.keys(changes).length > 0) await updateCommand(trx, row.id, changes)
  return Math.max(0, written)
}

function newRow(report: Started, receipt: Receipt): CommandRow {
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
