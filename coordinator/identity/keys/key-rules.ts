// Pure rules of API keys (spec §5): visibility, expiry, limits, and the fields of the API and of audit events.
import type { AccessArea, AccessLevels } from '../../../shared/api/account.ts'
import type { ApiKey, CreateKeyRequest, KeyKind } from '../../../shared/api/keys.ts'
import { toTimestamp, toTimestampOrNull } from '../../../shared/clock.ts'
import { ApiError } from '../../../shared/errors.ts'
import { ACCESS_LEVELS } from '../../../shared/field-values.ts'
import { LIMITS } from '../../../shared/limits.ts'
import type { AuditDetail } from '../../audit/service.ts'
import type { ApiKeyRow } from '../../db/schema.ts'
import { rankLevel } from '../../http/access.ts'
import type { Actor } from '../../http/actor.ts'

const DAY_MS = 24 * 60 * 60_000
const MACHINE_KEY_MS = LIMITS.machineKeyDays * DAY_MS
const MAX_EXPIRY_MS = LIMITS.keyExpiryDays.max * DAY_MS
const AREAS = Object.keys(ACCESS_LEVELS) as AccessArea[]

/** Returns when a machine key expires that is used, created or rotated at `now`. */
export const computeMachineExpiry = (now: number): number => now + MACHINE_KEY_MS

/** Owners see every key of the workspace, other users their own. */
export function canSeeKey(actor: Actor, row: ApiKeyRow): boolean {
  if (row.workspace_id !== actor.workspaceId) return false
  return actor.role === 'owner' || (row.user_id !== null && row.user_id === actor.userId)
}

/** @throws ApiError not_found for a key that is revoked or expired: both are final */
export function requireUsableKey(row: ApiKeyRow, now: number): ApiKeyRow {
  const problem =
    row.revoked_at !== null ? 'has been revoked' : isExpired(row, now) ? 'has expired' : undefined
  if (problem === undefined) return row
  throw new ApiError('not_found', `The API key ${row.id} ${problem}. Create another API key.`)
}

const isExpired = ({ expires_at }: ApiKeyRow, now: number): boolean =>
  expires_at !== null && expires_at <= now

/**
 * The expiry of a new key, in milliseconds since the epoch; null: never.
 * @throws ApiError bad_request
 */
export function chooseExpiry(input: CreateKeyRequest, now: number): number | null {
  const { kind = 'api', expiresAt, expiresInDays } = input
  if (kind === 'machine') {
    if (expiresAt !== undefined || expiresInDays !== undefined) throw createMachineExpiryError()
    return computeMachineExpiry(now)
  }
  if (expiresAt !== undefined && expiresInDays !== undefined)
    throw new ApiError('bad_request', 'expiresAt and expiresInDays must not be given together')
  if (expiresInDays !== undefined) return now + expiresInDays * DAY_MS
  return parseExpiry('api', expiresAt ?? null, now)
}

/** @throws ApiError bad_request */
export function parseExpiry(kind: KeyKind, expiresAt: string | null, now: number): number | null {
  if (kind === 'machine') throw createMachineExpiryError()
  if (expiresAt === null) return null
  const time = Date.parse(expiresAt)
  if (time > now && time <= now + MAX_EXPIRY_MS) return time
  throw new ApiError(
    'bad_request',
    `expiresAt must be in the future and at most ${LIMITS.keyExpiryDays.max} days away`,
  )
}

const createMachineExpiryError = () =>
  new ApiError(
    'bad_request',
    `The expiry of a machine key cannot be set: it is ${LIMITS.machineKeyDays} days after the last use of the key.`,
  )

/** The stored levels: the areas of the interface are named, the area history only where the key has it. */
export function expandAccess(access: 'read' | AccessLevels): AccessLevels {
  const levels: AccessLevels = access === 'read' ? { boxes: 'read', workspace: 'read' } : access
  const { boxes = 'none', workspace = 'none', history = 'none' } = levels
  return history === 'none' ? { boxes, workspace } : { boxes, workspace, history }
}

type Limits = Pick<ApiKeyRow, 'box_ids' | 'access' | 'expires_at'>

export const readBoxIds = ({ box_ids }: Pick<ApiKeyRow, 'box_ids'>): string[] | null =>
  box_ids === null ? null : (JSON.parse(box_ids) as string[])
export const readAccess = ({ access }: Pick<ApiKeyRow, 'access'>): AccessLevels | null =>
  access === null ? null : (JSON.parse(access) as AccessLevels)

/** Whether the key loses anything by the change. */
export function isNarrower(before: Limits, after: Limits): boolean {
  const boxIdsBefore = readBoxIds(before)
  const boxIdsAfter = readBoxIds(after)
  if (boxIdsAfter && (boxIdsBefore === null || boxIdsBefore.some((id) => !boxIdsAfter.includes(id))))
    return true
  const getRank = (limits: Limits, area: AccessArea) => rankLevel(readAccess(limits), area)
  if (AREAS.some((area) => getRank(after, area) < getRank(before, area))) return true
  return (after.expires_at ?? Number.POSITIVE_INFINITY) < (before.expires_at ?? Number.POSITIVE_INFINITY)
}

export const presentKey = (row: ApiKeyRow): ApiKey => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  userId: row.user_id,
  ending: row.ending,
  createdAt: toTimestamp(row.created_at),
  lastUsedAt: toTimestampOrNull(row.last_used_at),
  expiresAt: toTimestampOrNull(row.expires_at),
  boxIds: readBoxIds(row),
  access: readAccess(row),
  revokedAt: toTimestampOrNull(row.revoked_at),
})

/** The detail never contains the secret, its hash or its ending. */
export const createKeyAuditDetail = (row: ApiKeyRow): AuditDetail => ({
  keyId: row.id,
  name: row.name,
  kind: row.kind,
  userId: row.user_id,
  expiresAt: toTimestampOrNull(row.expires_at),
  boxIds: readBoxIds(row)?.join(',') ?? null,
  access: row.access,
})
