// What a box reports on its commands, made into records: folded in memory per command, then written once.
import type { Logger } from 'pino'
import { COMMAND_STREAMS } from '../../shared/api/commands.ts'
import type { CommandReport } from '../../shared/api/reports.ts'
import type { Trx } from '../db/transaction.ts'
import { type Folded, foldReports, newRow } from './fold.ts'
import { writeOutput } from './output-chunks.ts'
import { hashKept, type Receipt, type Receipts } from './receipts.ts'
import { type CommandRow, commandById, insertCommand, updateReported } from './store.ts'

type Started = Extract<CommandReport, { type: 'command.started' }>

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
  /** New records, and bytes of output that were written. */
  records: number
  outputBytes: number
}

/** `fresh`: the row that its start makes, unless it is there already. */
type Reported = { fresh: CommandRow | null; reports: CommandReport[] }

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

  function byCommand(boxId: string, reports: readonly CommandReport[]): Map<string, Reported> {
    const commands = new Map<string, Reported>()
    for (const report of reports) {
      let reported = commands.get(report.commandId)
      if (reported === undefined) {
        reported = { fresh: null, reports: [] }
        commands.set(report.commandId, reported)
      }
      if (report.type === 'command.started' && reported.fresh === null) {
        const receipt = acceptedReceipt(boxId, report)
        if (receipt === null) continue
        reported.fresh = newRow(report, receipt)
      }
      reported.reports.push(report)
    }
    return commands
  }

  async function apply(trx: Trx, boxId: string, all: readonly CommandReport[]): Promise<Applied> {
    const applied: Applied = { arrived: [], records: 0, outputBytes: 0 }
    for (const [commandId, { fresh, reports }] of byCommand(boxId, all)) {
      let folded: Folded | null = null
      if (fresh !== null) {
        folded = foldReports(fresh, reports)
        if (await insertCommand(trx, folded.row)) applied.records += 1
        else folded = null
      }
      if (folded === null) {
        const row = await commandById(trx, commandId)
        if (row?.box_id !== boxId || row.deleted_at !== null) continue
        folded = foldReports(row, reports)
        await updateReported(trx, folded.row)
      }
      const { row, output } = folded
      for (const stream of COMMAND_STREAMS) {
        const { before, added } = output[stream]
        if (added === null) continue
        await writeOutput(trx, commandId, stream, before, added)
        applied.outputBytes += added.data.length
      }
      if (row.mode === 'detached' || row.status !== 'running') applied.arrived.push(commandId)
    }
    return applied
  }

  return { load: receipts.load, apply }
}
