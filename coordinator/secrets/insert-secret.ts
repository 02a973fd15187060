// Inserts a secret with its encrypted value.

import type { CreateSecretRequest } from '../../shared/api/secrets.ts'
import { ApiError } from '../../shared/errors.ts'
import { newId } from '../../shared/ids.ts'
import { DEFAULT_SECRET_LOCATIONS } from '../../shared/secret-locations.ts'
import type { LoadPlanLimits } from '../admission/plan-limits.ts'
import type { Keyring } from '../base/sealing/keyring.ts'
import type { SecretValue } from '../base/sealing/secret-value.ts'
import type { SecretRow } from '../db/schema.ts'
import type { Trx } from '../db/transaction.ts'
import { type Actor, formatActor } from '../http/actor.ts'
import { type HostRules, normalizeHosts } from './hosts.ts'
import { normalizeLocations } from './locations.ts'
import { newPlaceholder } from './placeholders.ts'
import { recordSecretChange } from './record.ts'
import { countSecrets, insertSecret } from './store.ts'

/** The value is not a plain string, so that it cannot be logged. */
export type NewSecret = Omit<CreateSecretRequest, 'value' | 'grants'> & { value: SecretValue }

/** The caller has locked the workspace. Throws invalid_host, secret_limit and name_taken. */
export type InsertSecret = (trx: Trx, actor: Actor, input: NewSecret, now: number) => Promise<SecretRow>

export function createSecretInserter({
  keyring,
  hostRules,
  loadPlanLimits,
}: {
  keyring: Pick<Keyring, 'seal'>
  hostRules: HostRules
  loadPlanLimits: LoadPlanLimits
}): InsertSecret {
  return async (trx, actor, input, now) => {
    const { name, value, description = null, hosts = [], placeholderPrefix } = input
    const locations = normalizeLocations(input.in ?? DEFAULT_SECRET_LOCATIONS)
    const normalized = normalizeHosts(hosts, hostRules)
    const { workspaceId } = actor
    const count = await countSecrets(trx, workspaceId)
    if (count >= (await loadPlanLimits(trx, workspaceId)).secrets) throw new ApiError('secret_limit')
    const id = newId('secret')
    const { sealed, keyId } = keyring.seal(value, { workspaceId, rowId: id })
    const row: SecretRow = {
      id,
      workspace_id: workspaceId,
      name,
      description,
      hosts: JSON.stringify(normalized),
      locations: JSON.stringify(locations),
      placeholder: newPlaceholder(placeholderPrefix),
      value: sealed,
      key_id: keyId,
      scope: 'workspace',
      created_by: formatActor(actor),
      created_at: now,
      updated_at: now,
      last_rotated_at: null,
    }
    if (!(await insertSecret(trx, row)))
      throw new ApiError('name_taken', `A secret named ${name} already exists. Choose another name.`)
    recordSecretChange(trx, 'secret.create', actor, row, now, {
      hosts: normalized.join(', '),
      locations: locations.join(', '),
    })
    return row
  }
}
