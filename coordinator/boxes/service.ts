// The box operations (spec §4.3): access checks, list, create, wake, suspend and delete.
import type {
  Box,
  BoxDetail,
  BoxList,
  CreateBoxRequest,
  DesiredState,
  ListBoxesQuery,
  Vitals,
} from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { encodeCursor, parseCursor } from '../http/page-cursor.ts'
import { enqueueCreateJob, setDesiredState } from '../lifecycle/set-desired-state.ts'
import { createOperation, findLatestOperation, presentOperation } from '../operations/service.ts'
import { checkCreateSource, newBoxRow } from './create.ts'
import { pickFreeName } from './names.ts'
import { presentBox, presentDetail } from './present.ts'
import {
  findFirstOwner,
  findJob,
  insertBox,
  listBoxEvents,
  listBoxes,
  listLiveNames,
  lockBoxRow,
  prepareBoxQueries,
} from './store.ts'

export type BoxServiceOptions = {
  db: Db
  clock: Clock
  /** Schedules the box for the reconciler. Called after the commit that wrote its desired state or job. */
  schedule(boxId: string): void
  /** Whether the box's agent has a tunnel open. */
  isConnected(boxId: string): boolean
  /** The latest heartbeat in memory, which may be newer than the stored one. */
  latestHeartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  /** 0 or more, less than 1. Selects the fruit that names a box created without a name. Default: Math.random. */
  random?: () => number
}

/**
 * Every function throws not_found for an id that is unknown or malformed, and for a box that the actor may not see.
 * Functions that write use `trx` when given. The reconciler is scheduled after its commit.
 */
export type BoxService = {
  /** Newest first. */
  list(actor: Actor, options?: { live?: boolean }): Promise<Box[]>
  /** One page, newest first. Throws bad_request for an invalid `before`. */
  listPage(actor: Actor, query: ListBoxesQuery & { limit: number }): Promise<BoxList>
  create(actor: Actor, input: CreateBoxRequest, trx?: Trx): Promise<Box>
  get(actor: Actor, id: string): Promise<BoxDetail>
  wake(actor: Actor, id: string, trx?: Trx): Promise<Box>
  suspend(actor: Actor, id: string, trx?: Trx): Promise<Box>
  /** Idempotent: deleting again returns the operation of the first delete. */
  remove(actor: Actor, id: string, trx?: Trx): Promise<{ box: Box; operation: Operation }>
  /** Finds a box by id, also a deleted one. */
  find(actor: Actor, id: string): Promise<BoxRow>
  /** Finds a box that is not deleted, by name or id. Runs for every edge request. */
  resolve(actor: Actor, nameOrId: string): Promise<BoxRow>
}

/** Spec §5.6, §5.9. */
function canSeeBox(actor: Actor, row: BoxRow): boolean {
  if (row.workspace_id !== actor.workspaceId) return false
  if (actor.boxIds && !actor.boxIds.includes(row.id)) return false
  return actor.role !== 'contractor' || row.owner_user_id === actor.userId
}

/** Rejects a box that is deleted or being deleted. */
function requireNotDeleted(row: BoxRow): BoxRow {
  if (row.desired_state !== 'terminated') return row
  throw new ApiError('not_found', `Box ${row.hostname} has been deleted. Use another box.`)
}

/** Names the box as the client did, unless the text is long or has spaces or control characters. */
function createNoSuchBoxError(
  nameOrId: string,
  hint = 'Check the name or id, and that this API key may access the box.',
): ApiError {
  if (!/^[^\p{C}\p{Z}]{1,64}$/u.test(nameOrId)) return new ApiError('not_found')
  return new ApiError('not_found', `No such box: ${nameOrId}. ${hint}`)
}

/** The control plane addresses boxes only by id (spec §1). */
function assertId(id: string): void {
  if (!isUuid(id))
    throw createNoSuchBoxError(
      id,
      'This route needs the id of the box: GET /api/v1/boxes lists names and ids.',
    )
}

export function createBoxService(options: BoxServiceOptions): BoxService {
  const { db, clock, schedule, isConnected, latestHeartbeat, random = Math.random } = options
  const queries = prepareBoxQueries(db)

  const requireVisible = (actor: Actor, row: BoxRow | undefined, nameOrId: string): BoxRow => {
    if (!row || !canSeeBox(actor, row)) throw createNoSuchBoxError(nameOrId)
    return row
  }

  async function find(actor: Actor, id: string): Promise<BoxRow> {
    assertId(id)
    return requireVisible(actor, (await queries.byId(id))[0], id)
  }

  async function resolve(actor: Actor, nameOrId: string): Promise<BoxRow> {
    // No name is a UUID: a UUID has 36 characters, a name at most 32.
    const id = nameOrId.toLowerCase()
    const [row] = isUuid(id) ? await queries.byId(id) : await queries.byName(actor.workspaceId, nameOrId)
    return requireNotDeleted(requireVisible(actor, row, nameOrId))
  }

  const visibleTo = (actor: Actor) => ({
    workspaceId: actor.workspaceId,
    ownerUserId: actor.role === 'contractor' ? (actor.userId ?? '') : undefined,
    ids: actor.boxIds ?? undefined,
  })

  async function list(actor: Actor, { live = false } = {}): Promise<Box[]> {
    return (await listBoxes(db, { ...visibleTo(actor), live })).map(presentBox)
  }

  async function listPage(
    actor: Actor,
    { live, limit, before: cursor }: ListBoxesQuery & { limit: number },
  ): Promise<BoxList> {
    const before = cursor === undefined ? undefined : parseCursor(cursor, isUuid)
    const rows = await listBoxes(db, { ...visibleTo(actor), live: live === '1', before, limit: limit + 1 })
    const page = rows.slice(0, limit)
    const last = page.at(-1)
    return {
      boxes: page.map(presentBox),
      nextBefore: rows.length > limit && last ? encodeCursor({ at: last.created_at, id: last.id }) : null,
    }
  }

  async function get(actor: Actor, id: string): Promise<BoxDetail> {
    const box = await find(actor, id)
    const [events, job] = await Promise.all([listBoxEvents(db, id), findJob(db, id)])
    return presentDetail({ box, events, job, connected: isConnected(id), heartbeat: latestHeartbeat(id) })
  }

  async function create(actor: Actor, input: CreateBoxRequest, trx?: Trx): Promise<Box> {
    if (actor.boxIds) {
      throw new ApiError(
        'key_access_denied',
        'This API key is limited to some boxes and cannot create boxes. Use an API key without this limit.',
        { fields: { scope: 'boxes' } },
      )
    }
    checkCreateSource(input)
    return transaction(trx ?? db, async (trx, onCommit) => {
      const ownerUserId = actor.userId ?? (await findFirstOwner(trx, actor.workspaceId))
      if (!ownerUserId) throw new Error(`Workspace ${actor.workspaceId} has no owner.`)
      const now = clock.now()
      const row = await insertWithName(trx, input.name, actor.workspaceId, (hostname) =>
        newBoxRow({ input, actor, ownerUserId, hostname, now }),
      )
      await enqueueCreateJob(trx, row, { actor: formatActor(actor), now })
      onCommit(() => schedule(row.id))
      return presentBox(row)
    })
  }

  /** Relies on the unique index: of two concurrent creates with the same name, one succeeds. */
  async function insertWithName(
    trx: Trx,
    name: string | undefined,
    workspaceId: string,
    createRow: (hostname: string) => BoxRow,
  ): Promise<BoxRow> {
    if (name !== undefined) {
      const row = await insertBox(trx, createRow(name))
      if (!row) throw new ApiError('name_taken', `A box named ${name} already exists. Choose another name.`)
      return row
    }
    const taken = await listLiveNames(trx, workspaceId)
    for (;;) {
      const hostname = pickFreeName(taken, random())
      const row = await insertBox(trx, createRow(hostname))
      if (row) return row
      taken.add(hostname)
    }
  }

  /** Throws not_found for a box that is being deleted, which is still readable. */
  function changeDesiredState(actor: Actor, id: string, state: DesiredState, trx?: Trx): Promise<Box> {
    return transaction(trx ?? db, async (trx, onCommit) => {
      assertId(id)
      const row = requireNotDeleted(requireVisible(actor, await lockBoxRow(trx, id), id))
      if (row.observed_state === 'provision_failed') throw new ApiError('box_failed')
      onCommit(() => schedule(id))
      if (row.desired_state === state) return presentBox(row)
      return presentBox(
        await setDesiredState(trx, row, { state, actor: formatActor(actor), now: clock.now() }),
      )
    })
  }

  function remove(actor: Actor, id: string, trx?: Trx) {
    return transaction(trx ?? db, async (trx, onCommit) => {
      assertId(id)
      const row = requireVisible(actor, await lockBoxRow(trx, id), id)
      const now = clock.now()
      const earlier = await findLatestOperation(trx, 'box_delete', id)
      if (row.desired_state === 'terminated' && earlier) {
        return { box: presentBox(row), operation: presentOperation(earlier) }
      }
      const { workspace_id: workspaceId } = row
      const operation = await createOperation(trx, { workspaceId, kind: 'box_delete', targetId: id, now })
      const written = await setDesiredState(trx, row, {
        state: 'terminated',
        actor: formatActor(actor),
        now,
        operationId: operation.id,
      })
      onCommit(() => schedule(id))
      return { box: presentBox(written), operation: presentOperation(operation) }
    })
  }

  return {
    list,
    listPage,
    create,
    get,
    wake: (actor, id, trx) => changeDesiredState(actor, id, 'running', trx),
    suspend: (actor, id, trx) => changeDesiredState(actor, id, 'suspended', trx),
    remove,
    find,
    resolve,
  }
}
