// Applies a box's command reports to the history: groups them by command, reduces each group in memory and writes the
// result once.
import type { Logger } from 'pino'
import { COMMAND_STREAMS } from '../../../shared/api/commands.ts'
import type { CommandReport } from '../../../shared/api/reports.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { Trx } from '../../db/transaction.ts'
import { hasZeroDataRetention } from '../../db/zero-data-retention.ts'
import { type CommandClaims, type CommandClaimsSigner, hashStoredCommand } from './command-claims.ts'
import { writeOutput } from './output-chunk-store.ts'
import { newCommandRow, type RecordUpdate, reduceReports } from './reduce-reports.ts'
import { type CommandRow, findReportedCommand, insertCommand, updateReportedColumns } from './store.ts'

type StartedReport = Extract<CommandReport, { type: 'command.started' }>

export type CommandIngest = {
  /** Loads the signing key. Must resolve before `apply` is called, which cannot read the key inside its transaction. */
  loadKey(): Promise<void>
  /**
   * Writes a box's reports, in order. Skips invalid reports, because they must not block the reports after them: a start
   * whose claims token is invalid (logged), and reports on a command that is not in the history of this box.
   */
  apply(trx: Trx, box: ReportingBox, reports: readonly CommandReport[]): Promise<IngestResult>
}

/** Locked by the transaction. */
export type ReportingBox = Pick<BoxRow, 'id' | 'workspace_id'>

export type IngestResult = {
  /** The commands, and whether their record contains the exit. */
  recorded: { commandId: string; hasExited: boolean }[]
  /** Number of inserted records. */
  newRecords: number
  /** Bytes of output written. */
  outputBytes: number
}

type CommandReports = {
  /** The row to insert. null when the reports do not include the start. The row of a repeated start exists already. */
  newRow: CommandRow | null
  reports: CommandReport[]
}

export function createCommandIngest(claims: CommandClaimsSigner, log: Pick<Logger, 'warn'>): CommandIngest {
  function verifyClaims(boxId: string, report: StartedReport): CommandClaims | null {
    const { commandId, command, commandTruncated, cwd } = report
    const verified = claims.verify(report.claimsToken)
    const reject = (reason: string) => {
      log.warn({ boxId, commandId, reason }, 'rejected a command record')
      return null
    }
    if (verified === null) return reject('invalid claims token')
    if (verified.boxId !== boxId) return reject('claims token was issued for another box')
    if (verified.commandId !== commandId) return reject('claims token was issued for another command')
    if (!verified.keepOutput) return verified
    if (
      command === null ||
      cwd === null ||
      hashStoredCommand(command, commandTruncated, cwd) !== verified.hash
    ) {
      return reject('command text or directory differs from the request')
    }
    return verified
  }

  function groupByCommand(
    boxId: string,
    reports: readonly CommandReport[],
    keepContent: boolean,
  ): Map<string, CommandReports> {
    const groups = new Map<string, CommandReports>()
    for (const report of reports) {
      let group = groups.get(report.commandId)
      if (group === undefined) {
        group = { newRow: null, reports: [] }
        groups.set(report.commandId, group)
      }
      if (report.type === 'command.started' && group.newRow === null) {
        const verified = verifyClaims(boxId, report)
        if (verified === null) continue
        group.newRow = newCommandRow(report, {
          ...verified,
          keepOutput: verified.keepOutput && keepContent,
        })
      }
      group.reports.push(report)
    }
    return groups
  }

  async function apply(
    trx: Trx,
    { id: boxId, workspace_id: workspaceId }: ReportingBox,
    reports: readonly CommandReport[],
  ): Promise<IngestResult> {
    const result: IngestResult = { recorded: [], newRecords: 0, outputBytes: 0 }
    // The claims of a command that was requested earlier may allow to store its content.
    const keepContent = !(await hasZeroDataRetention(trx, workspaceId))
    for (const [commandId, group] of groupByCommand(boxId, reports, keepContent)) {
      let reduced: RecordUpdate | null = null
      if (group.newRow !== null) {
        reduced = reduceReports(group.newRow, group.reports)
        if (await insertCommand(trx, reduced.row)) result.newRecords += 1
        else reduced = null
      }
      if (reduced === null) {
        const row = await findReportedCommand(trx, commandId)
        if (row?.box_id !== boxId || row.deleted_at !== null) continue
        reduced = reduceReports(row, group.reports, keepContent)
        await updateReportedColumns(trx, reduced.row)
      }
      const { row, output } = reduced
      for (const stream of COMMAND_STREAMS) {
        const { before, update } = output[stream]
        if (update === null) continue
        await writeOutput(trx, commandId, stream, before, update)
        result.outputBytes += update.data.length
      }
      result.recorded.push({ commandId, hasExited: row.status !== 'running' })
    }
    return result
  }

  return { loadKey: claims.loadKey, apply }
}
