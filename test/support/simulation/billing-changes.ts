// Random changes of boxes and snapshots, through the functions with which the coordinator writes them.

import { setDesiredState } from '../../../coordinator/boxes/lifecycle/set-desired-state.ts'
import { setObservedState } from '../../../coordinator/boxes/lifecycle/set-observed-state.ts'
import { ALLOWED_TRANSITIONS } from '../../../coordinator/boxes/lifecycle/transitions.ts'
import type { BoxService } from '../../../coordinator/boxes/service.ts'
import { enqueueDeletion, enqueueSnapshot } from '../../../coordinator/boxes/sources/enqueue.ts'
import { insertBox, updateBox } from '../../../coordinator/boxes/store/boxes.ts'
import { updateSnapshot } from '../../../coordinator/boxes/store/snapshots.ts'
import { lockBox } from '../../../coordinator/db/lock-box.ts'
import type { BoxRow, SnapshotRow } from '../../../coordinator/db/schema.ts'
import type { Trx } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import type { Clock } from '../../../shared/clock.ts'
import { newUuid } from '../../../shared/ids.ts'
import { TIER_NAMES, type Tier } from '../../../shared/tiers.ts'
import { NO_BOX_SECRETS } from '../box-hooks.ts'

export type RandomChangeOptions = {
  random: () => number
  clock: Clock
  boxes: BoxService
  owner: Actor
  users: readonly string[]
  /** Live boxes. */
  limit: number
}

export type RandomChange = {
  /** Chooses the next change, which may do nothing. */
  next(): (trx: Trx) => Promise<void>
  /** Continues those of a killed coordinator. */
  adopt(earlier: RandomChange): void
  readonly created: number
}

export function createRandomChange(options: RandomChangeOptions): RandomChange {
  const { random, clock, boxes, owner, users, limit } = options
  let created = 0

  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const actor = 'system'

  const listIds = (trx: Trx) =>
    trx
      .selectFrom('boxes')
      .select('id')
      .where('observed_state', '!=', 'terminated')
      .orderBy('hostname')
      .execute()

  /** `position` is from 0 to 1, because a killed transaction may have created the last box. */
  async function lockAt(trx: Trx, position: number): Promise<BoxRow | undefined> {
    const ids = await listIds(trx)
    const id = ids[Math.floor(position * ids.length)]?.id
    return id === undefined ? undefined : lockBox(trx, id)
  }

  async function create(trx: Trx, name: string, tier: Tier): Promise<void> {
    if ((await listIds(trx)).length < limit) await boxes.create(owner, { name, tier }, trx)
  }

  async function move(trx: Trx, position: number, choice: number, dies: boolean): Promise<void> {
    const box = await lockAt(trx, position)
    if (box === undefined) return
    const all = ALLOWED_TRANSITIONS[box.observed_state]
    const others = all.filter((state) => state !== 'terminating' && state !== 'provision_failed')
    const states = dies || others.length === 0 ? all : others
    const to = states[Math.floor(choice * states.length)]
    if (to !== undefined) await setObservedState(trx, box, to, 'simulated', actor, clock.now())
  }

  async function want(trx: Trx, position: number, state: 'running' | 'suspended'): Promise<void> {
    const box = await lockAt(trx, position)
    if (box === undefined || box.desired_state === 'terminated' || box.desired_state === state) return
    await setDesiredState(trx, box, { state, actor, now: clock.now() })
  }

  async function update(trx: Trx, position: number, changes: Partial<BoxRow>): Promise<void> {
    const box = await lockAt(trx, position)
    if (box !== undefined) await updateBox(trx, box.id, { ...changes, updated_at: clock.now() })
  }

  async function insertMachine(trx: Trx, position: number, hostname: string): Promise<void> {
    const box = await lockAt(trx, position)
    if (box !== undefined)
      await insertBox(trx, {
        ...box,
        id: newUuid(),
        kind: 'machine',
        hostname,
        observed_state: 'running',
        terminated_at: null,
      })
  }

  async function takeSnapshot(trx: Trx, position: number, name: string, transient: boolean): Promise<void> {
    const box = await lockAt(trx, position)
    if (box === undefined) return
    const snapshot = { name, kind: 'manual', transient, actor, now: clock.now() } as const
    await enqueueSnapshot(trx, box, snapshot, NO_BOX_SECRETS)
  }

  /** From creating to available or failed, to deleting, to deleted. */
  async function advanceSnapshot(trx: Trx, position: number, bytes: number): Promise<void> {
    const rows: SnapshotRow[] = await trx
      .selectFrom('snapshots')
      .selectAll()
      .where('deleted_at', 'is', null)
      .orderBy('name')
      .execute()
    const row = rows[Math.floor(position * rows.length)]
    if (row === undefined) return
    const now = clock.now()
    if (row.status === 'creating')
      await updateSnapshot(trx, row.id, {
        status: bytes % 10 === 0 ? 'failed' : 'available',
        content_bytes: bytes,
        updated_at: now,
      })
    else if (row.status === 'deleting')
      await updateSnapshot(trx, row.id, { deleted_at: now, updated_at: now })
    else if (bytes % 3 === 0) await enqueueDeletion(trx, row, { actor, now })
  }

  function next(): (trx: Trx) => Promise<void> {
    const [kind, position, other, dies] = [random(), random(), random(), random() < 0.03]
    created += 1
    const name = `box-${created}`
    const [tier, user] = [pick(TIER_NAMES), pick(users)]
    if (kind < 0.1) return (trx) => create(trx, name, tier)
    if (kind < 0.18) return (trx) => want(trx, position, other < 0.5 ? 'running' : 'suspended')
    if (kind < 0.23) return (trx) => update(trx, position, { tier })
    if (kind < 0.26) return (trx) => update(trx, position, { owner_user_id: user })
    if (kind < 0.28) return (trx) => update(trx, position, { hostname: `${name}-renamed` })
    if (kind < 0.285) return (trx) => insertMachine(trx, position, name)
    if (kind < 0.32) return (trx) => takeSnapshot(trx, position, name, other < 0.2)
    if (kind < 0.4) return (trx) => advanceSnapshot(trx, position, Math.floor(other * 30_000_000_000))
    if (kind < 0.45)
      return async (trx) => {
        await move(trx, position, other, false)
        await move(trx, position, 0, false)
      }
    if (kind < 0.46)
      return async (trx) => {
        const box = await lockAt(trx, position)
        if (box !== undefined) await boxes.remove(owner, box.id, trx)
      }
    return (trx) => move(trx, position, other, dies)
  }

  return {
    next,
    adopt(earlier) {
      created = earlier.created
    },
    get created() {
      return created
    },
  }
}
