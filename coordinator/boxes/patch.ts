// Checks a PATCH of a box across its fields (spec §4.3) and returns the changes of its row.
import type { Updateable } from 'kysely'
import type { PatchBoxRequest } from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { BoxRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import { serializeEnvVars, toDeletion } from './create.ts'
import { changeLabels } from './labels.ts'
import type { BoxScheduleKind } from './lifecycle/update-schedules.ts'

const MINUTE_MS = 60_000

type PatchOptions = { box: BoxRow; actor: Pick<Actor, 'role'>; now: number }

/**
 * @throws ApiError bad_request for no field and for fields that exclude each other; invalid_pause_at, box_not_running,
 * not_owner, invalid_env, invalid_labels, environment_too_large
 */
export function toRowChanges(input: PatchBoxRequest, { box, actor, now }: PatchOptions): Updateable<BoxRow> {
  const { env, ...settings } = input
  const hasSettings = Object.keys(settings).length > 0
  if (env === undefined && !hasSettings)
    throw new ApiError('bad_request', 'body must have at least one field to change')
  if (env !== undefined && hasSettings)
    throw new ApiError('bad_request', 'env must not be given together with other fields')
  if (env !== undefined) return { env_vars: serializeEnvVars(env) }

  const { name, autoPauseMin, autoSnapshotHours, autoSnapshotKeep, quietHoursExempt } = settings
  const { deleteAfterMinutes, labels } = settings
  if (quietHoursExempt !== undefined && actor.role !== 'owner')
    throw new ApiError('not_owner', 'Only an owner of the workspace may set quietHoursExempt.')
  const pauseAt = readPauseAt(settings, now)
  if (pauseAt != null) assertRunning(box)
  return {
    ...(name !== undefined && { hostname: name }),
    ...(labels !== undefined && { labels: changeLabels(box.labels, labels) }),
    ...(pauseAt !== undefined && { pause_at: pauseAt }),
    ...(deleteAfterMinutes !== undefined && toDeletion(deleteAfterMinutes, now)),
    ...(autoPauseMin !== undefined && { auto_pause_min: autoPauseMin }),
    ...(autoSnapshotHours !== undefined && { auto_snapshot_hours: autoSnapshotHours }),
    ...(autoSnapshotKeep !== undefined && { auto_snapshot_keep: autoSnapshotKeep }),
    ...(quietHoursExempt !== undefined && { quiet_hours_exempt: quietHoursExempt ? 1 : 0 }),
  }
}

/** The schedules that count from this request. The deadline counts from none. */
export const listChangedSchedules = (input: PatchBoxRequest): BoxScheduleKind[] => [
  ...(input.autoPauseMin == null ? [] : (['auto_pause'] as const)),
  ...(input.autoSnapshotHours == null ? [] : (['auto_snapshot'] as const)),
]

/** undefined: no change. null: no deadline. */
function readPauseAt(
  { ttlMinutes, pauseAt }: Pick<PatchBoxRequest, 'ttlMinutes' | 'pauseAt'>,
  now: number,
): number | null | undefined {
  if (ttlMinutes !== undefined && pauseAt !== undefined)
    throw new ApiError('invalid_pause_at', 'ttlMinutes and pauseAt must not be given together')
  if (ttlMinutes != null) return now + ttlMinutes * MINUTE_MS
  if (ttlMinutes === null || pauseAt === null) return null
  if (pauseAt === undefined) return undefined
  const time = Date.parse(pauseAt)
  if (time <= now || time > now + LIMITS.ttlMinutes.max * MINUTE_MS)
    throw new ApiError('invalid_pause_at', 'pauseAt must be in the future and at most 30 days away')
  return time
}

/** A degraded box runs; only its agent is not connected. */
function assertRunning(box: BoxRow): void {
  const { hostname, desired_state: desired, observed_state: observed } = box
  if (desired === 'running' && (observed === 'running' || observed === 'degraded')) return
  throw new ApiError(
    'box_not_running',
    `Box ${hostname} is not running, so it cannot have a deadline. Wake it with \`box wake ${hostname}\`.`,
    { fields: { state: observed } },
  )
}
