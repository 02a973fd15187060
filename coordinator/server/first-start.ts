// Creates the workspace, the owner's key and a first box on the first start, in one transaction.
import { newApiKey } from '../../shared/api-key.ts'
import { ApiError } from '../../shared/errors.ts'
import { recordAuditEvent } from '../audit/service.ts'
import { type DataDirectory, readOwnerKey, writePrivateFile } from '../base/data-directory.ts'
import type { BoxService } from '../boxes/service.ts'
import { transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import type { ModuleBase } from '../http/module.ts'
import {
  createKeyFinder,
  createOwnerKey,
  ensureFirstWorkspace,
  recordKeyCreation,
} from '../identity/keys/keys.ts'

/**
 * Makes sure that the data directory has an owner key. Later starts create one only when the file has no known key.
 * Returns the key's actor; null: the key is revoked or expired.
 */
export async function ensureOwnerKey(
  context: ModuleBase & { boxes: Pick<BoxService, 'create'> },
  dataDirectory: DataDirectory,
): Promise<Actor | null> {
  const { db, clock, boxes, log } = context
  // The finder of the context would record a use of the key, and a start is not a use.
  const findKey = createKeyFinder({ db, clock })
  const storeKey = (key: string) => writePrivateFile(dataDirectory.ownerKeyFile, `${key}\n`)
  await transaction(db, async (trx) => {
    const { key } = await ensureFirstWorkspace({ db: trx, clock, newApiKey, storeKey })
    if (!key) return
    const actor = { system: true, workspaceId: key.workspace_id } as const
    recordAuditEvent(trx, { kind: 'workspace.create', actor, boxId: null, detail: {}, at: clock.now() })
    recordKeyCreation(trx, key)
    const found = await createKeyFinder({ db: trx, clock })(key.hash)
    if ('actor' in found)
      await boxes.create(found.actor, {}, trx).catch((error: unknown) => {
        // It is refused before anything is written.
        if (!(error instanceof ApiError && error.code === 'insufficient_balance')) throw error
        log.warn('the first box was not created, because the free credit does not last for four hours')
      })
  })
  const found = await findKey(hashSecret(await readOwnerKey(dataDirectory.dir)))
  if ('actor' in found) return found.actor
  if (found.rejected !== 'unknown') return null
  log.warn(
    { file: dataDirectory.ownerKeyFile },
    'owner key file has no key of this workspace; creating a new owner key',
  )
  const created = await findKey(hashSecret(await createOwnerKey({ db, clock, newApiKey, storeKey })))
  return 'actor' in created ? created.actor : null
}
