// The secrets of a workspace (spec §4.10).
import type { CreateSecretRequest, PatchSecretRequest, Secret, SecretUse } from '../../shared/api/secrets.ts'
import type { Clock } from '../../shared/clock.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Keyring } from '../base/sealing/keyring.ts'
import type { SecretValue } from '../base/sealing/secret-value.ts'
import { recordVariableChange } from '../boxes/variable-changes.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { recordDeletion, repeatDeletion } from '../http/deletions.ts'
import type { BoxFinder } from '../http/find-box.ts'
import { readPages } from '../http/json-pages.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { deleteGrantsOfSecret, listGrants } from './grant-store.ts'
import { findTarget, type GrantTarget, isSameTarget, writeGrant } from './grants.ts'
import { type HostRules, listNarrowed, normalizeHosts } from './hosts.ts'
import type { InsertSecret, NewSecret } from './insert-secret.ts'
import { normalizeLocations, parseLocations } from './locations.ts'
import { createNoSuchSecretError, requireSecret, type WithSecret } from './lock-secret.ts'
import { isMember, type MountChanges, removeMountsOfSecret } from './mount-changes.ts'
import { listMountsOfSecret } from './mount-store.ts'
import { parseHosts, presentSecret, presentUse } from './present.ts'
import { recordSecretChange } from './record.ts'
import { covers } from './rules.ts'
import { deleteSecret, findSecret, getListedSecret, listSecrets, updateSecret } from './store.ts'
import { deleteUsesOfSecret, listUses } from './use-store.ts'

export type SecretPatch = Omit<PatchSecretRequest, 'value'> & { value?: SecretValue | undefined }

/** Functions with an id throw not_found for an id that is unknown in the workspace of the actor. */
export type SecretService = {
  /**
   * Newest first.
   * @param boxId only the secrets that this box may mount
   */
  listPages(actor: Actor, boxId: string | undefined): Promise<AsyncIterable<Secret[]>>
  /** Throws invalid_host, secret_limit, name_taken, and not_found or member_not_found for a grantee. */
  create(actor: Actor, input: NewSecret & Pick<CreateSecretRequest, 'grants'>): Promise<Secret>
  patch(actor: Actor, id: string, patch: SecretPatch): Promise<Secret>
  remove(actor: Actor, id: string): Promise<void>
  /** Newest first. */
  listUses(actor: Actor, id: string): Promise<SecretUse[]>
}

export type SecretServiceOptions = {
  db: Db
  clock: Clock
  keyring: Pick<Keyring, 'seal'>
  boxes: Pick<BoxFinder, 'find' | 'lockLive'>
  confirmActor: ConfirmActor
  hostRules: HostRules
  insertSecret: InsertSecret
  withSecret: WithSecret
  changes: Pick<MountChanges, 'remove' | 'cut'>
}

export function createSecretService(options: SecretServiceOptions): SecretService {
  const { db, clock, keyring, boxes, confirmActor, hostRules, insertSecret, withSecret } = options
  const { changes } = options

  const present = async (trx: Trx, id: string): Promise<Secret> =>
    presentSecret(await getListedSecret(trx, id), await listGrants(trx, [id]))

  const listPages: SecretService['listPages'] = async (actor, boxId) => {
    const box = boxId === undefined ? undefined : requireNotDeleted(await boxes.find(actor, boxId))
    return readSecretPages(db, actor.workspaceId, box)
  }

  const create: SecretService['create'] = (actor, { grants = [], ...input }) => {
    const boxIds = grants.flatMap(({ boxId }) => boxId ?? [])
    return transaction(db, async (trx) => {
      // Boxes are locked before the workspace, in the order of their ids.
      const lockedBoxes = new Map<string, BoxRow>()
      for (const id of [...new Set(boxIds)].sort()) lockedBoxes.set(id, await boxes.lockLive(trx, actor, id))
      const now = clock.now()
      await confirmActor(trx, actor, now)
      await assertOpen(trx, actor.workspaceId)
      const secret = await insertSecret(trx, actor, input, now)
      const added: GrantTarget[] = []
      for (const grantee of grants) {
        const target = await findTarget(trx, actor, grantee, lockedBoxes.get(grantee.boxId ?? '') ?? null)
        if (added.some((other) => isSameTarget(other, target))) continue
        added.push(target)
        await writeGrant(trx, actor, secret, target, now)
      }
      return present(trx, secret.id)
    })
  }

  const patch: SecretService['patch'] = (actor, id, { value, description, hosts, scope, in: chosen }) => {
    const locations = chosen && normalizeLocations(chosen)
    const normalized = hosts === undefined ? undefined : normalizeHosts(hosts, hostRules)
    return transaction(db, async (trx) => {
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const secret = await requireSecret(trx, actor, id)
      const before = parseHosts(secret)
      const after = normalized ?? before
      const sealed = value && keyring.seal(value, { workspaceId: secret.workspace_id, rowId: id })
      await updateSecret(trx, id, {
        updated_at: now,
        ...(normalized !== undefined && { hosts: JSON.stringify(normalized) }),
        ...(locations !== undefined && { locations: JSON.stringify(locations) }),
        ...(description !== undefined && { description }),
        ...(scope !== undefined && { scope }),
        ...(sealed && { value: sealed.sealed, key_id: sealed.keyId, last_rotated_at: now }),
      })
      const [addedHosts, removedHosts] = compare(before, after)
      const oldLocations = parseLocations(secret)
      const [addedLocations, removedLocations] = compare(oldLocations, locations ?? oldLocations)
      const hasOtherDescription = description !== undefined && description !== secret.description
      const isOpened = scope !== undefined && scope !== secret.scope
      if (isOpened) await deleteGrantsOfSecret(trx, id)
      const detail = {
        ...(addedHosts.length > 0 && { addedHosts: addedHosts.join(', ') }),
        ...(removedHosts.length > 0 && { removedHosts: removedHosts.join(', ') }),
        ...(addedLocations.length > 0 && { addedLocations: addedLocations.join(', ') }),
        ...(removedLocations.length > 0 && { removedLocations: removedLocations.join(', ') }),
        ...(hasOtherDescription && { description: true }),
        ...(isOpened && { scope }),
      }
      if (Object.keys(detail).length > 0) recordSecretChange(trx, 'secret.update', actor, secret, now, detail)
      if (sealed) recordSecretChange(trx, 'secret.rotate', actor, secret, now)
      if (addedHosts.length > 0 || removedHosts.length > 0) {
        const mounts = await listMountsOfSecret(trx, id)
        for (const boxId of new Set(mounts.map(({ box_id }) => box_id))) {
          changes.cut(trx, { boxId, patterns: listNarrowed(before, after) })
          recordVariableChange(trx, boxId)
        }
      }
      return present(trx, id)
    })
  }

  const remove: SecretService['remove'] = (actor, id) =>
    repeatDeletion(db, actor, id, () => removeOnce(actor, id))

  const removeOnce = (actor: Actor, id: string): Promise<void> =>
    withSecret({ actor, id }, async ({ trx, secret, mounts, now }) => {
      await removeMountsOfSecret(trx, changes, secret, mounts, {
        actor,
        now,
        reason: 'the secret was deleted',
      })
      await deleteGrantsOfSecret(trx, id)
      await deleteUsesOfSecret(trx, id)
      await deleteSecret(trx, id)
      await recordDeletion(trx, actor, id, now)
      recordSecretChange(trx, 'secret.delete', actor, secret, now)
    })

  return {
    listPages,
    create,
    patch,
    remove,
    async listUses(actor, id) {
      if (!(await findSecret(db, actor.workspaceId, id))) throw createNoSuchSecretError()
      return (await listUses(db, id, LIMITS.secretUsageRows)).map(presentUse)
    },
  }
}

/** What was added, and what was removed. */
const compare = (before: readonly string[], after: readonly string[]): [string[], string[]] => [
  after.filter((text) => !before.includes(text)),
  before.filter((text) => !after.includes(text)),
]

function requireNotDeleted(box: BoxRow): BoxRow {
  if (box.desired_state !== 'terminated') return box
  throw new ApiError('not_found', `Box ${box.hostname} has been deleted. Use another box.`)
}

/** A secret has up to 500 grants. */
const PAGE_SIZE = 10

async function* readSecretPages(
  db: Db,
  workspaceId: string,
  box: BoxRow | undefined,
): AsyncGenerator<Secret[]> {
  if (box?.restricted === 1) return
  const isOwnedByMember = box !== undefined && (await isMember(db, box))
  for await (const rows of readPages((page) => listSecrets(db, workspaceId, page), PAGE_SIZE)) {
    const grants = await listGrants(
      db,
      rows.map(({ id }) => id),
    )
    const grantsById = Map.groupBy(grants, ({ secret_id }) => secret_id)
    const usable = rows.filter(
      (row) => box === undefined || covers(row, grantsById.get(row.id) ?? [], box, isOwnedByMember),
    )
    yield usable.map((row) => presentSecret(row, grantsById.get(row.id) ?? []))
  }
}
