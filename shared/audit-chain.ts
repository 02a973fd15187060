// The hash chain of the audit log. The hash of each event covers the event before it, so that an edited, removed or
// inserted event changes all later hashes. The coordinator seals events; verify-audit-chain.ts verifies pages of them.
import { createHash, randomBytes } from 'node:crypto'

/** The hash before the first event of a workspace. */
export const START_HASH = '0'.repeat(64)

/** An event as it is stored. Instants are milliseconds since the epoch. */
export type AuditChainEvent = {
  workspace_id: string
  /** 1 for the first event of the workspace, without gaps. */
  no: number
  at: number
  kind: string
  origin: string
  actor_kind: string
  actor_user_id: string | null
  actor_token_id: string | null
  box_id: string | null
}

export type SealedAuditEvent = AuditChainEvent & {
  /** A JSON object; null when the detail has been erased (zero data retention). */
  detail: string | null
  /** Random, so that an erased detail cannot be guessed from its hash. Erased with the detail. */
  salt: string | null
  detail_hash: string
  hash: string
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const hashDetail = (salt: string, detail: string): string => sha256(`${salt}\n${detail}`)

/** @param previousHash the hash of the event before; START_HASH for the first event */
const hashEvent = (event: AuditChainEvent & { detail_hash: string }, previousHash: string): string =>
  sha256(
    JSON.stringify([
      previousHash,
      event.workspace_id,
      event.no,
      event.at,
      event.kind,
      event.origin,
      event.actor_kind,
      event.actor_user_id,
      event.actor_token_id,
      event.box_id,
      event.detail_hash,
    ]),
  )

export function sealAuditEvent<E extends AuditChainEvent & { detail: string }>(
  event: E,
  previousHash: string,
): E & SealedAuditEvent {
  const salt = randomBytes(16).toString('hex')
  const hashed = { ...event, salt, detail_hash: hashDetail(salt, event.detail) }
  return { ...hashed, hash: hashEvent(hashed, previousHash) }
}

/** Whether the event is unchanged and follows the event with `previousHash`. An erased detail is not verified. */
export const isIntact = (event: SealedAuditEvent, previousHash: string): boolean =>
  hasIntactDetail(event) && hashEvent(event, previousHash) === event.hash

/** Whether the detail is unchanged or erased. */
export const hasIntactDetail = ({ detail, salt, detail_hash }: SealedAuditEvent): boolean =>
  detail === null || salt === null ? detail === salt : hashDetail(salt, detail) === detail_hash
