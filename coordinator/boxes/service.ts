// The rules of boxes (spec §4.3): who may see which, what a create takes, what wake, suspend and delete do.
import type { Box, BoxDetail, CreateBox, DesiredState, Vitals } from '../../shared/api/boxes.ts'
import type { Operation } from '../../shared/api/operations.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { isUuid } from '../../shared/ids.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, actorName } from '../http/actor.ts'
import { begin, desire } from '../lifecycle/desire.ts'
import { createOperation, findOperation, presentOperation } from '../operations/service.ts'
import { checkSource, newBoxRow } from './create.ts'
import { freeName } from './names.ts'
import { type EnvVar, envVarsOf, presentBox, presentDetail } from './present.ts'
import {
  boxLookups,
  eventsOf,
  firstOwner,
  insertBox,
  jobOf,
  listBoxes,
  liveNames,
  lockBoxRow,
} from './store.ts'

export type BoxServiceOptions = {
  db: Db
  clock: Clock
  /** A box's desired state or job was written: the reconciler's business. Called after the commit. */
  poke(boxId: string): void
  /** The box's agent holds a tunnel now. */
  connected(boxId: string): boolean
  /** The last heartbeat in memory. */
  heartbeat(boxId: string): { vitals: Vitals; at: number } | undefined
  /** From 0 up to, not including, 1: which fruit a box without a name is called. */
  random?: () => number
}

/**
 * Every function throws not_found for a box that is unknown, malformed, foreign or hidden from the actor.
 * Those that write become a part of `trx` when they are given one; the reconciler hears of it after its commit.
 */
export type BoxService = {
  /** Newest first. */
  list(actor: Actor, options?: { live?: boolean }): Promise<Box[]>
  create(actor: Actor, input: CreateBox, trx?: Trx): Promise<Box>
  get(actor: Actor, id: string): Promise<BoxDetail>
  wake(actor: Actor, id: string, trx?: Trx): Promise<Box>
  suspend(actor: Actor, id: string, trx?: Trx): Promise<Box>
  /** A second one answers with the first one's operation. */
  remove(actor: Actor, id: string, trx?: Trx): Promise<{ box: Box; operation: Operation }>
  /** The box an edge request names: by its id, or by its name among live boxes. The request path's lookup. */
  resolve(actor: Actor, nameOrId: string): Promise<BoxRow>
}

/** Whether the actor may see the box at all (spec §5.6, §5.9). */
export function covers(actor: Actor, row: BoxRow): boolean {
  if (row.workspace_id !== actor.workspaceId) return false
  if (actor.boxIds && !actor.boxIds.includes(row.id)) return false
  return actor.role !== 'contractor' || row.owner_user_id === actor.userId
}

/** The variables its creator gave the box. */
export const envOf = (row: BoxRow): Record<string, string> =>
  Object.fromEntries(envVarsOf(row).map(({ name, value }: EnvVar) => [name, value]))

export function createBoxService(options: BoxServiceOptions): BoxService {
  const { db, clock, poke, connected, heartbeat, random = Math.random } = options
  const lookups = boxLookups(db)

  const visible = (actor: Actor, row: BoxRow | undefined): BoxRow => {
    if (!row || !covers(actor, row)) throw new ApiError('not_found')
    return row
  }

  async function find(actor: Actor, id: string): Promise<BoxRow> {
    return visible(actor, isUuid(id) ? (await lookups.byId(id))[0] : undefined)
  }

  async function resolve(actor: Actor, nameOrId: string): Promise<BoxRow> {
    // A name may look like an id only if it is 36 characters long, and names have at most 32.
    if (isUuid(nameOrId)) return find(actor, nameOrId)
    return visible(actor, (await lookups.byName(actor.workspaceId, nameOrId))[0])
  }

  async function list(actor: Actor, { live = false } = {}): Promise<Box[]> {
    const rows = await listBoxes(db, {
      workspaceId: actor.workspaceId,
      live,
      ownerUserId: actor.role === 'contractor' ? (actor.userId ?? '') : undefined,
      ids: actor.boxIds ?? undefined,
    })
    return rows.map(presentBox)
  }

  async function get(actor: Actor, id: string): Promise<BoxDetail> {
    const box = await find(actor, id)
    const [events, job] = await Promise.all([eventsOf(db, id), jobOf(db, id)])
    return presentDetail({ box, events, job, connected: connected(id), heartbeat: heartbeat(id) })
  }

  async function create(actor: Actor, input: CreateBox, trx?: Trx): Promise<Box> {
    if (actor.boxIds) {
      throw new ApiError('key_access_denied', 'This key is limited to some boxes and cannot create one.', {
        fields: { scope: 'boxes' },
      })
    }
    checkSource(input)
    return transaction(trx ?? db, async (trx, onCommit) => {
      const ownerUserId = actor.userId ?? (await firstOwner(trx, actor.workspaceId))
      if (!ownerUserId) throw new Error(`Workspace ${actor.workspaceId} has no owner.`)
      const now = clock.now()
      const row = await insertNamed(trx, input.name, actor.workspaceId, (hostname) =>
        newBoxRow({ input, actor, ownerUserId, hostname, now }),
      )
      await begin(trx, row, { actor: actorName(actor), now })
      onCommit(() => poke(row.id))
      return presentBox(row)
    })
  }

  /** The unique index decides, so that of two creates at once only one gets the name. */
  async function insertNamed(
    trx: Trx,
    name: string | undefined,
    workspaceId: string,
    rowWith: (hostname: string) => BoxRow,
  ): Promise<BoxRow> {
    if (name !== undefined) {
      const row = await insertBox(trx, rowWith(name))
      if (!row) throw new ApiError('name_taken', `A box named ${name} exists already.`)
      return row
    }
    const taken = await liveNames(trx, workspaceId)
    for (;;) {
      const hostname = freeName(taken, random())
      const row = await insertBox(trx, rowWith(hostname))
      if (row) return row
      taken.add(hostname)
    }
  }

  /** A box being deleted stays readable, but answers wake and suspend as one that is gone. */
  function move(actor: Actor, id: string, state: DesiredState, trx?: Trx): Promise<Box> {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const row = visible(actor, isUuid(id) ? await lockBoxRow(trx, id) : undefined)
      if (row.desired_state === 'terminated') throw new ApiError('not_found')
      if (row.observed_state === 'provision_failed') throw new ApiError('box_failed')
      onCommit(() => poke(id))
      if (row.desired_state === state) return presentBox(row)
      return presentBox(await desire(trx, row, { state, actor: actorName(actor), now: clock.now() }))
    })
  }

  function remove(actor: Actor, id: string, trx?: Trx) {
    return transaction(trx ?? db, async (trx, onCommit) => {
      const row = visible(actor, isUuid(id) ? await lockBoxRow(trx, id) : undefined)
      const now = clock.now()
      const earlier = await findOperation(trx, 'box_delete', id)
      if (row.desired_state === 'terminated' && earlier) {
        return { box: presentBox(row), operation: presentOperation(earlier) }
      }
      const { workspace_id: workspaceId } = row
      const operation = await createOperation(trx, { workspaceId, kind: 'box_delete', targetId: id, now })
      const written = await desire(trx, row, {
        state: 'terminated',
        actor: actorName(actor),
        now,
        operationId: operation.id,
      })
      onCommit(() => poke(id))
      return { box: presentBox(written), operation: presentOperation(operation) }
    })
  }

  return {
    list,
    create,
    get,
    wake: (actor, id, trx) => move(actor, id, 'running', trx),
    suspend: (actor, id, trx) => move(actor, id, 'suspended', trx),
    remove,
    resolve,
  }
}
