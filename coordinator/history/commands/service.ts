// The command history of a box (spec §4.4): access checks, pages and deletion.
import type {
  Command,
  CommandList,
  CommandListQuery,
  CommandOutput,
  CommandOutputQuery,
} from '../../../shared/api/commands.ts'
import type { Clock } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { COMMAND_ID_PATTERN } from '../../../shared/field-values.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { recordAuditEvent } from '../../audit/service.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Db } from '../../db/open.ts'
import { transaction } from '../../db/transaction.ts'
import type { Actor } from '../../http/actor.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import { encodeCursor, parseCursor } from '../../http/page-cursor.ts'
import { readOutputPage } from './output-page.ts'
import type { PendingRecords } from './pending-records.ts'
import { presentCommand } from './present.ts'
import { type CommandRow, eraseCommands, findCommandById, listCommands } from './store.ts'

/**
 * Every function throws not_found for a box that the actor may not see, and for a command whose id is unknown,
 * malformed or belongs to another box. get and getOutput also throw not_found for a deleted record. The history of a
 * suspended or deleted box stays readable.
 */
export type CommandHistory = {
  list(actor: Actor, boxId: string, query: CommandListQuery): Promise<CommandList>
  get(actor: Actor, boxId: string, commandId: string): Promise<Command>
  getOutput(actor: Actor, boxId: string, commandId: string, query: CommandOutputQuery): Promise<CommandOutput>
  /** Idempotent: deleting a deleted record does nothing. */
  remove(actor: Actor, boxId: string, commandId: string): Promise<void>
  /** Returns the number of deleted records. */
  removeAll(actor: Actor, boxId: string): Promise<number>
}

export type CommandHistoryOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'find'>
  pending: PendingRecords
}

/** How long a request for several commands waits for the pending records of the box. */
const BOX_RECORDS_WAIT_MS = 2_000
/** How long a request for one command waits for its pending record. */
const COMMAND_RECORD_WAIT_MS = 10_000
/** Records per transaction. With 1 MiB for each stream, a batch is about 100 MiB. */
const BATCH_SIZE = 50

export function createCommandHistory({ db, clock, boxes, pending }: CommandHistoryOptions): CommandHistory {
  async function checkAccessAndWaitForRecords(
    actor: Actor,
    boxId: string,
    commandId?: string,
  ): Promise<void> {
    await boxes.find(actor, boxId)
    const waitMs = commandId === undefined ? BOX_RECORDS_WAIT_MS : COMMAND_RECORD_WAIT_MS
    await pending.waitForCommit(boxId, waitMs, commandId)
  }

  const requireRecordOfBox = (row: CommandRow | undefined, boxId: string): CommandRow => {
    if (row?.box_id !== boxId) throw new ApiError('not_found')
    return row
  }

  async function findCommand(actor: Actor, boxId: string, commandId: string): Promise<CommandRow> {
    await checkAccessAndWaitForRecords(actor, boxId, commandId)
    const found = COMMAND_ID_PATTERN.test(commandId) ? await findCommandById(db, commandId) : undefined
    const row = requireRecordOfBox(found, boxId)
    if (row.deleted_at !== null) throw new ApiError('not_found')
    return row
  }

  async function list(actor: Actor, boxId: string, query: CommandListQuery): Promise<CommandList> {
    const { limit = LIMITS.commandPage.default, before, mode, status, to } = query
    const cursor = before === undefined ? undefined : parseCursor(before, (id) => COMMAND_ID_PATTERN.test(id))
    await checkAccessAndWaitForRecords(actor, boxId)
    const rows = await listCommands(db, { boxId, mode, status, before: cursor, to }, limit + 1)
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      commands: page.map(presentCommand),
      nextBefore: rows.length > limit && last ? encodeCursor({ at: last.requested_at, id: last.id }) : null,
    }
  }

  async function remove(actor: Actor, boxId: string, commandId: string): Promise<void> {
    await checkAccessAndWaitForRecords(actor, boxId, commandId)
    await transaction(db, async (trx) => {
      // The lock ensures that only one of two concurrent requests records the deletion.
      await lockBox(trx, boxId)
      const found = COMMAND_ID_PATTERN.test(commandId) ? await findCommandById(trx, commandId) : undefined
      const row = requireRecordOfBox(found, boxId)
      if (row.deleted_at !== null) return
      const now = clock.now()
      await eraseCommands(trx, [commandId], now)
      const detail = { commandId }
      recordAuditEvent(trx, { kind: 'command_history.delete', actor, boxId, detail, at: now })
    })
  }

  async function removeAll(actor: Actor, boxId: string): Promise<number> {
    await checkAccessAndWaitForRecords(actor, boxId)
    for (let deleted = 0; ; ) {
      const batchDeleted = await transaction(db, async (trx) => {
        await lockBox(trx, boxId)
        const rows = await listCommands(trx, { boxId }, BATCH_SIZE)
        if (rows.length === 0) return 0
        const now = clock.now()
        await eraseCommands(
          trx,
          rows.map(({ id }) => id),
          now,
        )
        // Each batch has its own event: the coordinator may be killed before the next batch.
        const detail = { deleted: rows.length }
        recordAuditEvent(trx, { kind: 'command_history.delete', actor, boxId, detail, at: now })
        return rows.length
      })
      deleted += batchDeleted
      if (batchDeleted < BATCH_SIZE) return deleted
    }
  }

  return {
    list,
    get: async (actor, boxId, commandId) => presentCommand(await findCommand(actor, boxId, commandId)),
    getOutput: async (actor, boxId, commandId, query) =>
      readOutputPage(db, await findCommand(actor, boxId, commandId), query),
    remove,
    removeAll,
  }
}
