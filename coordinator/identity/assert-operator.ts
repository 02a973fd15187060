// Decides who operates the coordinator: the owners of its first workspace, with the key of the machine or a dashboard session.
import { z } from 'zod'
import { ApiError } from '../../shared/errors.ts'
import type { Db } from '../db/open.ts'
import type { Trx } from '../db/transaction.ts'
import { assertRole, NEEDS_OPERATOR } from '../http/access.ts'
import type { Actor } from '../http/actor.ts'
import { hashSecret } from '../http/hash-secret.ts'
import type { Peers } from '../replicas/peers.ts'
import { findKey } from './store/keys.ts'
import { isFirstWorkspace } from './store/workspaces.ts'

export type AssertOperator = (actor: Actor) => Promise<void>

export type AssertOperatorOptions = {
  db: Db
  /** The content of the key file in the data directory, which only the user of the coordinator can read; '': there is none. */
  readOwnerKey(): Promise<string>
  /** null: this is the only coordinator of the database. */
  peers?: Pick<Peers, 'handle' | 'callAll'> | null
}

const HAS_KEY = 'operator.has-key'
const PEER_TIMEOUT_MS = 5_000
const UNKNOWN_KEY = 'Another coordinator does not answer whether this is the key of its machine. Try again.'

/**
 * All routes of the operator use it. Throws unauthorized for an API key that is not the one in the key file, or is limited, and for
 * a ticket; not_allowed for a contractor; and not_owner for other users than owners of the first workspace.
 */
export function createAssertOperator({ db, readOwnerKey, peers }: AssertOperatorOptions): AssertOperator {
  const isOwnKey = async (hash: string): Promise<boolean> => hash === hashSecret(await readOwnerKey())

  async function isKeyOfMachine({ credential, access, boxIds }: Actor): Promise<boolean> {
    if (access !== null || boxIds !== null) return false
    const key = await findKey(db, credential.id)
    if (key === undefined) return false
    return (await isOwnKey(key.hash)) || isKeyOfOther(key.hash)
  }

  /** A request may arrive at another coordinator than that of the machine with the key. */
  async function isKeyOfOther(hash: string): Promise<boolean> {
    const options = { schema: z.boolean(), timeoutMs: PEER_TIMEOUT_MS }
    const outcomes = (await peers?.callAll(HAS_KEY, { hash }, options)) ?? []
    if (outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value)) return true
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    // It may be the one with the key.
    if (failed) throw new ApiError('control_plane_unavailable', UNKNOWN_KEY, { cause: failed.reason })
    return false
  }

  peers?.handle(HAS_KEY, z.object({ hash: z.string() }), ({ hash }) => isOwnKey(hash))

  return async (actor) => {
    const { type } = actor.credential
    if (type !== 'session' && !(type === 'key' && (await isKeyOfMachine(actor))))
      throw new ApiError('unauthorized', NEEDS_OPERATOR)
    assertRole(actor, 'owner')
    if (!(await isOperator(db, actor)))
      throw new ApiError(
        'not_owner',
        'Only an owner of the first workspace of this coordinator may send this request.',
      )
  }
}

/** Whether the user of the actor operates the coordinator. The caller has checked the credential. */
export const isOperator = async (
  db: Db | Trx,
  { role, workspaceId }: Pick<Actor, 'role' | 'workspaceId'>,
): Promise<boolean> => role === 'owner' && isFirstWorkspace(db, workspaceId)
