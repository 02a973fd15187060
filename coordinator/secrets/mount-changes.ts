// Adds and removes mounts, and updates what follows from them: the variables of the box, the audit log, the agent and the open
// connections of the broker. The caller has locked the boxes.

import { newId } from '../../shared/ids.ts'
import { type AuditEvent, recordAuditEvent } from '../audit/service.ts'
import { updateBox } from '../boxes/updates.ts'
import { recordVariableChange } from '../boxes/variable-changes.ts'
import { defineTopic, notify } from '../db/notifications.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow, SecretMountRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { findRole } from '../identity/lookups.ts'
import { listGrants } from './grant-store.ts'
import {
  deleteMounts,
  insertMount,
  listMountsOfBox,
  type MountWithBox,
  type MountWithSecret,
} from './mount-store.ts'
import { parseHosts } from './present.ts'
import { type BoxFacts, covers } from './rules.ts'
import type { SecretFields } from './store.ts'
import type { BrokerCut } from './types.ts'

export type ChangedBy = {
  actor: AuditEvent['actor']
  /** user:<id>, key:<id> or system. */
  createdBy: string
  now: number
}

export type RemovedMount = {
  id: string
  envName: string
  secret: Pick<SecretFields, 'id' | 'name' | 'hosts'>
}

/** What the broker closes at all coordinators. */
export const BROKER_CUTS = defineTopic<BrokerCut>('broker cuts')

export type MountChanges = {
  /** Inserts the mount. The caller writes the variables. undefined: the box has a secret under this variable. */
  insert(
    trx: Trx,
    box: Pick<BoxRow, 'id' | 'workspace_id'>,
    mount: { secret: SecretFields; envName: string },
    by: ChangedBy,
  ): Promise<SecretMountRow | undefined>
  /** @param reason why the coordinator removes the mounts; undefined: a request names them */
  remove(
    trx: Trx,
    boxId: string,
    mounts: readonly RemovedMount[],
    by: Pick<ChangedBy, 'actor' | 'now'> & { reason?: string },
  ): Promise<void>
  /** Writes the placeholders of the mounts of the box into its row. */
  writeVariables(trx: Trx, boxId: string): Promise<void>
  /** Closes the connections of the box to these hosts after the commit. */
  cut(trx: Trx, cut: BrokerCut): void
}

export function createMountChanges(): MountChanges {
  const cut: MountChanges['cut'] = (trx, change) => {
    if (change.patterns.length > 0) notify(trx, BROKER_CUTS, change)
  }

  async function writeVariables(trx: Trx, boxId: string): Promise<void> {
    await updateBox(trx, boxId, { mount_vars: serializeVariables(await listMountsOfBox(trx, boxId)) })
    recordVariableChange(trx, boxId)
  }

  return {
    cut,
    writeVariables,
    async insert(trx, { id: boxId, workspace_id: workspaceId }, { secret, envName }, by) {
      const row: SecretMountRow = {
        id: newId('secretMount'),
        workspace_id: workspaceId,
        secret_id: secret.id,
        box_id: boxId,
        env_name: envName,
        created_by: by.createdBy,
        created_at: by.now,
      }
      if (!(await insertMount(trx, row))) return undefined
      recordAuditEvent(trx, {
        kind: 'secret.mount',
        actor: by.actor,
        boxId,
        detail: { secretId: secret.id, name: secret.name, envName, hosts: parseHosts(secret).join(', ') },
        at: by.now,
      })
      return row
    },
    async remove(trx, boxId, mounts, { actor, now, reason }) {
      if (mounts.length === 0) return
      await deleteMounts(
        trx,
        mounts.map(({ id }) => id),
      )
      await writeVariables(trx, boxId)
      for (const { envName, secret } of mounts)
        recordAuditEvent(trx, {
          kind: 'secret.unmount',
          actor,
          boxId,
          detail: {
            ...{ secretId: secret.id, name: secret.name, envName },
            ...(reason !== undefined && { reason }),
          },
          at: now,
        })
      cut(trx, { boxId, patterns: [...new Set(mounts.flatMap(({ secret }) => parseHosts(secret)))] })
    },
  }
}

/** The form of BoxRow.env_vars. */
export const serializeVariables = (mounts: readonly MountWithSecret[]): string =>
  JSON.stringify(mounts.map(({ env_name: name, placeholder: value }) => ({ name, value })))

export const toRemovedMount = ({ id, env_name, secret_id, name, hosts }: MountWithSecret): RemovedMount => ({
  id,
  envName: env_name,
  secret: { id: secret_id, name, hosts },
})

/** Whether the box may use the secret now. */
export const isGranted = async (
  db: Db | Trx,
  secret: Pick<SecretFields, 'id' | 'scope'>,
  box: BoxFacts,
): Promise<boolean> => covers(secret, await listGrants(db, [secret.id]), box, await isMember(db, box))

export const isMember = async (db: Db | Trx, box: Pick<BoxRow, 'owner_user_id'>): Promise<boolean> =>
  (await findRole(db, box.owner_user_id)) !== undefined

/** Removes mounts of one secret. The caller has locked their boxes. */
export async function removeMountsOfSecret(
  trx: Trx,
  changes: Pick<MountChanges, 'remove'>,
  secret: SecretFields,
  mounts: readonly MountWithBox[],
  by: { actor: AuditEvent['actor']; now: number; reason: string },
): Promise<void> {
  for (const [boxId, ofBox] of Map.groupBy(mounts, ({ box_id }) => box_id))
    await changes.remove(
      trx,
      boxId,
      ofBox.map(({ id, env_name }) => ({ id, envName: env_name, secret })),
      by,
    )
}
