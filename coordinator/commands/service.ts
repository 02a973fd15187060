// The command history of a box (spec §4.4): who may read it, its pages, deleting.
import type {
  Command,
  CommandList,
  CommandListQuery,
  CommandOutput,
  CommandOutputQuery,
} from '../../shared/api/commands.ts'
import { COMMAND_ID } from '../../shared/api/commands.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import { recordAudit } from '../audit/service.ts'
import type { BoxService } from '../boxes/service.ts'
import type { Db } from '../db/open.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { ExpectedRecords } from './expected.ts'
import { outputPage } from './output-page.ts'
import { cursorAfter, parseCursor, presentCommand } from './present.ts'
import { type CommandRow, commandById, eraseCommands, listCommands } from './store.ts'

/**
 * Every function throws not_found for a box that the actor may not see, and for a command that is unknown, malformed
 * or another box's. A box that is paused or deleted keeps its history.
 */
export type CommandHistory = {
  list(actor: Actor, boxId: string, query: CommandListQuery): Promise<CommandList>
  get(actor: Actor, boxId: string, commandId: string): Promise<Command>
  output(actor: Actor, boxId: string, commandId: string, query: CommandOutputQuery): Promise<CommandOutput>
  /** A second time does nothing. */
  remove(actor: Actor, boxId: string, commandId: string): Promise<void>
  /** Returns how many there were. */
  removeAll(actor: Actor, boxId: string): Promise<number>
}

export type CommandHistoryOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxService, 'resolve'>
  expected: ExpectedRecords
}

/** How long a reader waits for what the box has not told yet of commands that were answered: of all, and of one. */
const REPORTS_WAIT_MS = 2_000
const REPORT_WAIT_MS = 10_000
/** Records in one transaction: with 1 MiB of each stream, some 100 MiB. */
const AT_ONCE = 50

export function createCommandHistory({ db, clock, boxes, expected }: CommandHistoryOptions): CommandHistory {
  async function enter(actor: Actor, boxId: string, commandId?: string): Promise<void> {
    await boxes.resolve(actor, boxId)
    await expected.settled(boxId, commandId === undefined ? REPORTS_WAIT_MS : REPORT_WAIT_MS, commandId)
  }

  const ofBox = (row: CommandRow | undefined, boxId: string): CommandRow => {
    if (row?.box_id !== boxId) throw new ApiError('not_found')
    return row
  }

  async function find(actor: Actor, boxId: string, commandId: string): Promise<CommandRow> {
    await enter(actor, boxId, commandId)
    const row = ofBox(COMMAND_ID.test(commandId) ? await commandById(db, commandId) : undefined, boxId)
    if (row.deleted_at !== null) throw new ApiError('not_found')
    return row
  }

  async function list(actor: Actor, boxId: string, query: CommandListQuery): Promise<CommandList> {
    const { limit = LIMITS.commandPage.default, before, mode, status } = query
    const start = before === undefined ? undefined : parseCursor(before)
    await enter(actor, boxId)
    const rows = await listCommands(db, { boxId, mode, status, before: start }, limit + 1)
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    return {
      commands: shown.map(presentCommand),
      nextBefore: rows.length > limit && last ? cursorAfter(last) : null,
    }
  }

  async function remove(actor: Actor, boxId: string, commandId: string): Promise<void> {
    await enter(actor, boxId, commandId)
    await transaction(db, async (trx) => {
      const row = ofBox(COMMAND_ID.test(commandId) ? await commandById(trx, commandId) : undefined, boxId)
      if (row.deleted_at !== null) return
      const now = clock.now()
      await eraseCommands(trx, [commandId], now)
      await recordAudit(trx, { kind: 'command_history.delete', actor, boxId, detail: { commandId }, at: now })
    })
  }

  async function removeAll(actor: Actor, boxId: string): Promise<number> {
    await enter(actor, boxId)
    for (let deleted = 0; ; ) {
      const count = await transaction(db, async (trx) => {
        const rows = await listCommands(trx, { boxId }, AT_ONCE)
        const now = clock.now()
        const ids = rows.map(({ id }) => id)
        await eraseCommands(trx, ids, now)
        const all = deleted + ids.length
        if (ids.length < AT_ONCE && all > 0) {
          const detail = { deleted: all }
          await recordAudit(trx, { kind: 'command_history.delete', actor, boxId, detail, at: now })
        }
        return ids.length
      })
      deleted += count
      if (count < AT_ONCE) return deleted
    }
  }

  return {
    list,
    get: async (actor, boxId, commandId) => presentCommand(await find(actor, boxId, commandId)),
    output: async (actor, boxId, commandId, query) =>
      outputPage(db, await find(actor, boxId, commandId), query),
    remove,
    removeAll,
  }
}
