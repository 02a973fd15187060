// The secrets that are mounted on a box (spec §4.10).
import { setTimeout } from 'node:timers/promises'
import type { BrokerTest, MountSecretRequest, SecretMount } from '../../shared/api/secrets.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { recordDeletion, wasDeleted } from '../http/deletions.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { writeGrant } from './grants.ts'
import type { InsertSecret, NewSecret } from './insert-secret.ts'
import { requireSecret } from './lock-secret.ts'
import { isGranted, type MountChanges, toRemovedMount } from './mount-changes.ts'
import { findMount, listMountsOfBox } from './mount-store.ts'
import { presentMount } from './present.ts'
import type { SecretFields } from './store.ts'

/** A secret of the workspace, or a new one. */
export type MountSource = { secretId: string } | { created: Omit<NewSecret, 'placeholderPrefix'> }
export type MountInput = MountSource & Pick<MountSecretRequest, 'envName'>

/** Every function throws not_found for a box that the actor does not see, or that is deleted. */
export type BoxMountService = {
  list(actor: Actor, boxId: string): Promise<{ mounts: SecretMount[]; broker: BrokerTest }>
  /** Throws box_restricted, secret_not_granted, env_name_taken, and the errors of InsertSecret. */
  mount(actor: Actor, boxId: string, input: MountInput): Promise<SecretMount>
  unmount(actor: Actor, boxId: string, mountId: string): Promise<void>
}

export type BoxMountServiceOptions = {
  db: Db
  clock: Clock
  boxes: Pick<BoxFinder, 'find' | 'lockLive'>
  confirmActor: ConfirmActor
  insertSecret: InsertSecret
  changes: MountChanges
  getBrokerTest(boxId: string): BrokerTest
  /** See VariableSender. */
  whenSent(boxId: string): Promise<void>
  /** Resolves when the agent of the box is connected. Rejects after `ms`. */
  waitForAgent(boxId: string, ms: number): Promise<unknown>
}

/** How long a request waits for the agent. */
const MAX_WAIT_MS = 5000

export function createBoxMountService(options: BoxMountServiceOptions): BoxMountService {
  const { db, clock, boxes, confirmActor, insertSecret, changes, getBrokerTest, whenSent, waitForAgent } =
    options

  async function chooseSecret(
    trx: Trx,
    actor: Actor,
    box: BoxRow,
    source: MountSource,
    now: number,
  ): Promise<SecretFields> {
    if ('created' in source) {
      const secret = await insertSecret(trx, actor, source.created, now)
      const target = { box_id: box.id, hostname: box.hostname, user_id: null, email: null }
      await writeGrant(trx, actor, secret, target, now)
      return secret
    }
    const secret = await requireSecret(trx, actor, source.secretId)
    if (!(await isGranted(trx, secret, box)))
      throw new ApiError(
        'secret_not_granted',
        `No grant of the secret ${secret.name} covers box ${box.hostname}. Grant it to the box first.`,
      )
    return secret
  }

  /** The commands that the client starts next can use the secret, unless the agent is slow. */
  const mount: BoxMountService['mount'] = async (actor, boxId, input) => {
    const { mount, isRunning } = await insertMount(actor, boxId, input)
    // After a restart of the coordinator, the agent of a running box may be reconnecting.
    const isSent = async () => {
      if (isRunning) await waitForAgent(boxId, MAX_WAIT_MS).catch(() => undefined)
      await whenSent(boxId)
    }
    await Promise.race([isSent(), setTimeout(MAX_WAIT_MS, undefined, { ref: false })])
    return mount
  }

  const insertMount = (...[actor, boxId, input]: Parameters<BoxMountService['mount']>) =>
    transaction(db, async (trx) => {
      const box = await boxes.lockLive(trx, actor, boxId)
      const now = clock.now()
      await confirmActor(trx, actor, now)
      await assertOpen(trx, actor.workspaceId)
      assertNotRestricted(box)
      const { envName } = input
      const mounts = await listMountsOfBox(trx, boxId)
      if (mounts.some(({ env_name }) => env_name === envName)) throw createNameTakenError(box, envName)
      const secret = await chooseSecret(trx, actor, box, input, now)
      if (mounts.length >= LIMITS.boxMounts)
        throw new ApiError(
          'bad_request',
          `Box ${box.hostname} has ${LIMITS.boxMounts} secrets. Unmount a secret first.`,
        )
      const by = { actor, createdBy: formatActor(actor), now }
      const row = await changes.insert(trx, box, { secret, envName }, by)
      if (!row) throw createNameTakenError(box, envName)
      await changes.writeVariables(trx, boxId)
      const { name, placeholder, hosts, scope } = secret
      return {
        mount: presentMount({
          id: row.id,
          secret_id: secret.id,
          env_name: envName,
          name,
          placeholder,
          hosts,
          scope,
        }),
        isRunning: box.observed_state === 'running',
      }
    })

  const unmount: BoxMountService['unmount'] = async (actor, boxId, mountId) => {
    await transaction(db, async (trx) => {
      await boxes.lockLive(trx, actor, boxId)
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const found = await findMount(trx, boxId, mountId)
      if (!found) {
        if (await wasDeleted(trx, actor, `${boxId}/${mountId}`)) return
        throw new ApiError(
          'not_found',
          `The box has no such mount. GET /api/v1/boxes/${boxId}/secrets lists its mounts.`,
        )
      }
      await changes.remove(trx, boxId, [toRemovedMount(found)], { actor, now })
      await recordDeletion(trx, actor, `${boxId}/${mountId}`, now)
    })
  }

  return {
    async list(actor, boxId) {
      const { desired_state, hostname } = await boxes.find(actor, boxId)
      if (desired_state === 'terminated')
        throw new ApiError('not_found', `Box ${hostname} has been deleted. Use another box.`)
      const mounts = await listMountsOfBox(db, boxId)
      return { mounts: mounts.map(presentMount), broker: getBrokerTest(boxId) }
    },
    mount,
    unmount,
  }
}

function assertNotRestricted({ restricted, hostname }: BoxRow): void {
  if (restricted === 0) return
  throw new ApiError('box_restricted', `Box ${hostname} is restricted: it gets no secrets.`)
}

const createNameTakenError = ({ hostname }: BoxRow, envName: string): ApiError =>
  new ApiError(
    'env_name_taken',
    `Box ${hostname} already has a secret under the variable ${envName}. Unmount it first.`,
  )
