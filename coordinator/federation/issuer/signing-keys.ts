// The signing keys of the issuer: creates, rotates, publishes and uses them. Private keys are encrypted in the database.
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  exportPKCS8,
  generateKeyPair,
  importPKCS8,
  type JWK,
} from 'jose'
import type { Clock } from '../../../shared/clock.ts'
import type { Keyring } from '../../base/sealing/keyring.ts'
import { SecretValue } from '../../base/sealing/secret-value.ts'
import { defineTopic, notify, subscribe } from '../../db/notifications.ts'
import type { Db } from '../../db/open.ts'
import type { FederationKeyRow } from '../../db/schema.ts'
import { type Trx, transaction } from '../../db/transaction.ts'
import { lockValue } from '../../deployment/values.ts'
import { getFirstUse, planRotation } from './plan-rotation.ts'
import { deleteKey, insertKey, listKeys, updateKey } from './store.ts'

/** The only algorithm that AWS accepts besides ES256 of some services. */
export const ALGORITHM = 'RS256'

export type SigningKey = { id: string; key: CryptoKey }

export type Rotation = {
  /** false: the next key has not been published for long enough. */
  rotated: boolean
  activeKeyId: string
  nextKeyId: string
  /** The earliest time of the next rotation, in milliseconds since the epoch. */
  possibleAt: number
}

export type SigningKeys = {
  /** Creates the first keys. */
  getActive(): Promise<SigningKey>
  /** All keys: the next one, the active one and the retired ones. */
  listPublic(): Promise<JWK[]>
  /** Rotates the keys when the active one is 30 days old, and deletes keys that are not needed any more. */
  rotateIfDue(): Promise<void>
  /** @param record runs in the transaction of the rotation */
  rotate(record: (trx: Trx, rotation: Rotation, now: number) => void): Promise<Rotation>
}

const SIGNING_KEYS = defineTopic<Pick<Rotation, 'rotated' | 'activeKeyId'>>('signing keys')

export type SigningKeysOptions = { db: Db; clock: Clock; keyring: Pick<Keyring, 'seal' | 'open'> }

export function createSigningKeys({ db, clock, keyring }: SigningKeysOptions): SigningKeys {
  let active: SigningKey | undefined
  let rotations = 0
  /** One change of this coordinator at a time. A lock in the database orders those of all. */
  let last: Promise<unknown> = Promise.resolve()
  const forget = () => {
    rotations += 1
    active = undefined
  }
  const onChange = ({ rotated, activeKeyId }: Pick<Rotation, 'rotated' | 'activeKeyId'>) => {
    if (rotated || (active !== undefined && active.id !== activeKeyId)) forget()
  }
  subscribe(db, SIGNING_KEYS, onChange, { onGap: forget })

  async function createRow(state: FederationKeyRow['state'], now: number): Promise<FederationKeyRow> {
    const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
    const jwk = await exportJWK(publicKey)
    const id = await calculateJwkThumbprint(jwk)
    const { sealed, keyId } = keyring.seal(new SecretValue(await exportPKCS8(privateKey)), getContext(id))
    return {
      id,
      state,
      public_jwk: JSON.stringify({ ...jwk, kid: id, alg: ALGORITHM, use: 'sig' }),
      private_key: sealed,
      key_id: keyId,
      created_at: now,
      activated_at: state === 'active' ? now : null,
      retired_at: null,
    }
  }

  async function apply(options: {
    isRequested: boolean
    record?: (trx: Trx, rotation: Rotation, now: number) => void
  }): Promise<Rotation> {
    const now = clock.now()
    const expected = planRotation(await listKeys(db), now, options)
    // Before the transaction: the creation of a key takes a tenth of a second.
    const rows = await Promise.all(expected.create.map((state) => createRow(state, now)))
    return transaction(db, async (trx) => {
      await lockValue(trx, 'issuer_keys')
      // Another coordinator may have created or rotated the keys meanwhile, so that there is less to do.
      const { promote, create, remove } = planRotation(await listKeys(trx), now, options)
      const created = rows.filter(({ state }) => create.some((other) => other === state))
      if (promote !== null) {
        await updateKey(trx, promote.active, { state: 'retired', retired_at: now })
        await updateKey(trx, promote.next, { state: 'active', activated_at: now })
      }
      for (const row of created) await insertKey(trx, row)
      for (const id of remove) await deleteKey(trx, id)
      const keys = await listKeys(trx)
      const next = requireKey(keys, 'next')
      const rotation = {
        rotated: promote !== null,
        activeKeyId: requireKey(keys, 'active').id,
        nextKeyId: next.id,
        possibleAt: getFirstUse(next),
      }
      options.record?.(trx, rotation, now)
      const hasChanged = promote !== null || created.length > 0 || remove.length > 0
      if (hasChanged)
        notify(trx, SIGNING_KEYS, { rotated: rotation.rotated, activeKeyId: rotation.activeKeyId })
      return rotation
    })
  }

  function applyInTurn(options: Parameters<typeof apply>[0]): Promise<Rotation> {
    const result = last.then(() => apply(options))
    last = result.catch(() => undefined)
    return result
  }

  async function load(): Promise<FederationKeyRow[]> {
    const keys = await listKeys(db)
    if (keys.some(({ state }) => state === 'active')) return keys
    await applyInTurn({ isRequested: false })
    return listKeys(db)
  }

  return {
    async getActive() {
      if (active !== undefined) return active
      const before = rotations
      const { id, private_key: sealed } = requireKey(await load(), 'active')
      const pem = keyring.open(sealed, getContext(id)).reveal()
      const loaded = { id, key: await importPKCS8(pem, ALGORITHM) }
      // A key that was retired meanwhile may sign this token, but no later ones.
      if (rotations === before) active = loaded
      return loaded
    },
    listPublic: async () => (await load()).map(({ public_jwk }) => JSON.parse(public_jwk) as JWK),
    async rotateIfDue() {
      await applyInTurn({ isRequested: false })
    },
    rotate: (record) => applyInTurn({ isRequested: true, record }),
  }
}

/** The keys belong to the deployment, so to no workspace (SealedColumn.isOfDeployment). */
const getContext = (id: string) => ({ workspaceId: '', rowId: id })

function requireKey(keys: readonly FederationKeyRow[], state: FederationKeyRow['state']): FederationKeyRow {
  const found = keys.find((key) => key.state === state)
  if (found === undefined) throw new Error(`the issuer has no ${state} key`)
  return found
}
