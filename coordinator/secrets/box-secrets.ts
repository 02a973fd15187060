// The mounts that boxes get and lose without a request that names them: when a box is created, restricted, given away or
// deleted, and when its owner leaves the workspace.
import { CREDENTIAL_CHANNELS, type EnvironmentToggles } from '../../shared/api/environments.ts'
import type { Clock } from '../../shared/clock.ts'
import { listKnownNames } from '../../shared/known-secrets.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { BoxSecrets, CarriedMount } from '../boxes/box-hooks.ts'
import { lockBox } from '../db/lock-box.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { listGrants } from './grant-store.ts'
import {
  isGranted,
  isMember,
  type MountChanges,
  serializeVariables,
  toRemovedMount,
} from './mount-changes.ts'
import { deleteMountsOfBox, listMountedBoxIdsOfUser, listMountsOfBox } from './mount-store.ts'
import { parseHosts } from './present.ts'
import { covers } from './rules.ts'
import { lockSecrets } from './store.ts'
import { deleteUsesOfBox } from './use-store.ts'

export type BoxSecretHooks = BoxSecrets & {
  /** Unmounts all secrets of a box. The caller has locked the box. */
  restrictBox(trx: Trx, boxId: string): Promise<void>
  /** Unmounts the secrets that only the membership allows on the boxes of the user. Locks these boxes. */
  removeMember(trx: Trx, member: { actor: Actor; userId: string }): Promise<void>
  /** Unmounts all secrets of a box whose deletion has been requested. The caller has locked the box. */
  onBoxDelete(trx: Trx, box: BoxRow): Promise<void>
  /** Deletes the rows of a box, except its grants. */
  deleteOfBox(trx: Trx, boxId: string): Promise<void>
}

export function createBoxSecrets({
  clock,
  changes,
}: {
  clock: Clock
  changes: MountChanges
}): BoxSecretHooks {
  const onCreate: BoxSecrets['onCreate'] = async (trx, box, { actor, carried, toggles }) => {
    const names = listChannelNames(toggles)
    if (box.restricted === 0 && (carried.length > 0 || names.length > 0))
      await mountGranted(trx, box, { actor, carried, names })
    return serializeVariables(await listMountsOfBox(trx, box.id))
  }

  async function mountGranted(
    trx: Trx,
    box: BoxRow,
    { actor, carried, names }: { actor: Actor; carried: readonly CarriedMount[]; names: readonly string[] },
  ): Promise<void> {
    const ids = carried.map(({ secretId }) => secretId)
    const secrets = await lockSecrets(trx, box.workspace_id, { ids, names })
    const wanted = [
      ...carried.flatMap(({ secretId, envName }) => {
        const secret = secrets.find(({ id }) => id === secretId)
        return secret ? [{ secret, envName }] : []
      }),
      ...secrets
        .filter(({ name }) => names.includes(name))
        .map((secret) => ({ secret, envName: secret.name })),
    ]
    const grants = await listGrants(
      trx,
      secrets.map(({ id }) => id),
    )
    const isOwnedByMember = await isMember(trx, box)
    const taken = new Set((await listMountsOfBox(trx, box.id)).map(({ env_name }) => env_name))
    const by = { actor, createdBy: formatActor(actor), now: clock.now() }
    for (const mount of wanted) {
      const ofSecret = grants.filter(({ secret_id }) => secret_id === mount.secret.id)
      if (taken.has(mount.envName) || taken.size >= LIMITS.boxMounts) continue
      if (!covers(mount.secret, ofSecret, box, isOwnedByMember)) continue
      await changes.insert(trx, box, mount, by)
      taken.add(mount.envName)
    }
  }

  const mountForRepo: BoxSecrets['mountForRepo'] = async (trx, box, secretName) => {
    if (box.restricted === 1) return { problem: 'the box is restricted, and gets no secrets' }
    const { workspace_id: workspaceId } = box
    const [secret] = await lockSecrets(trx, workspaceId, { ids: [], names: [secretName] })
    if (!secret) return { problem: `the workspace has no secret ${secretName}` }
    const found = { placeholder: secret.placeholder, hosts: parseHosts(secret) }
    const mounts = await listMountsOfBox(trx, box.id)
    if (mounts.some(({ secret_id }) => secret_id === secret.id)) return found
    if (!(await isGranted(trx, secret, box)))
      return { problem: `the secret ${secretName} is not granted to the box` }
    const isFull = mounts.length >= LIMITS.boxMounts
    const by = { actor: { system: true, workspaceId } as const, createdBy: 'system', now: clock.now() }
    const row = isFull ? undefined : await changes.insert(trx, box, { secret, envName: secret.name }, by)
    if (!row)
      return {
        problem: isFull
          ? `the box has ${LIMITS.boxMounts} secrets`
          : `the box has another secret under the variable ${secretName}`,
      }
    await changes.writeVariables(trx, box.id)
    return found
  }

  const unmountAll = async (trx: Trx, boxId: string, reason: string): Promise<void> => {
    const mounts = await listMountsOfBox(trx, boxId)
    const [box] = mounts.length === 0 ? [] : [await lockBox(trx, boxId)]
    if (!box) return
    const actor = { system: true, workspaceId: box.workspace_id } as const
    await changes.remove(trx, boxId, mounts.map(toRemovedMount), { actor, now: clock.now(), reason })
  }

  async function unmountUncovered(
    trx: Trx,
    box: BoxRow,
    { isOwnedByMember, ...by }: { actor: Actor; now: number; reason: string; isOwnedByMember: boolean },
  ): Promise<void> {
    const mounts = await listMountsOfBox(trx, box.id)
    const grants = await listGrants(
      trx,
      mounts.map(({ secret_id }) => secret_id),
    )
    const uncovered = mounts.filter(
      (mount) =>
        !covers(
          mount,
          grants.filter(({ secret_id }) => secret_id === mount.secret_id),
          box,
          isOwnedByMember,
        ),
    )
    await changes.remove(trx, box.id, uncovered.map(toRemovedMount), by)
  }

  return {
    onCreate,
    mountForRepo,
    onOwnerChange: (trx, box, { actor, now }) =>
      unmountUncovered(trx, box, {
        ...{ actor, now, isOwnedByMember: true },
        reason: 'the box was given to another member',
      }),
    async listCarried(trx, boxId) {
      const mounts = await listMountsOfBox(trx, boxId)
      return mounts.map(({ secret_id: secretId, env_name: envName }) => ({ secretId, envName }))
    },
    restrictBox: (trx, boxId) => unmountAll(trx, boxId, 'the box is restricted'),
    onBoxDelete: (trx, { id }) => unmountAll(trx, id, 'the box was deleted'),
    async removeMember(trx, { actor, userId }) {
      for (const boxId of await listMountedBoxIdsOfUser(trx, userId)) {
        const box = await lockBox(trx, boxId)
        if (box?.workspace_id !== actor.workspaceId) continue
        await unmountUncovered(trx, box, {
          ...{ actor, now: clock.now(), isOwnedByMember: false },
          reason: 'the owner of the box has left the workspace',
        })
      }
    },
    async deleteOfBox(trx, boxId) {
      await deleteMountsOfBox(trx, boxId)
      await deleteUsesOfBox(trx, boxId)
    },
  }
}

const listChannelNames = (toggles: EnvironmentToggles | null): string[] =>
  CREDENTIAL_CHANNELS.filter((channel) => toggles?.[channel]).flatMap(listKnownNames)
