// Checks a create request across its fields and builds the new box's row.
import type { CreateBoxRequest } from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import { newUuid } from '../../shared/ids.ts'
import { LIMITS } from '../../shared/limits.ts'
import { DEFAULT_TIER } from '../../shared/tiers.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import type { PinnedEnvironment } from './box-hooks.ts'
import type { MachineChoice } from './choose-machine.ts'
import { changeLabels, NO_LABELS } from './labels.ts'

/** Throws for fields that exclude each other. */
export function checkCreateSource(input: CreateBoxRequest): void {
  const { fromSnapshotId, fromTemplate, region, image } = input
  if (fromSnapshotId !== undefined && fromTemplate !== undefined) throw new ApiError('invalid_template')
  if (fromSnapshotId === undefined && fromTemplate === undefined) return
  if (region !== undefined)
    throw new ApiError('invalid_region', 'region must be omitted: the box gets the region of the snapshot')
  if (image !== undefined)
    throw new ApiError('invalid_image', 'image must be omitted: the box gets the image of the snapshot')
}

/** A JSON list of the variables. Throws invalid_env above 100 names and environment_too_large above 64 KiB. */
export function serializeEnvVars(env: Record<string, string>): string {
  const entries = Object.entries(env)
  if (entries.length > LIMITS.boxEnvNames) throw new ApiError('invalid_env')
  const bytes = entries.reduce(
    (sum, [name, value]) => sum + Buffer.byteLength(name) + Buffer.byteLength(value),
    0,
  )
  if (bytes > LIMITS.boxEnvBytes) throw new ApiError('environment_too_large')
  return JSON.stringify(entries.map(([name, value]) => ({ name, value })))
}

/** The columns of a deletion after this time; null: there is none. */
export const toDeletion = (
  minutes: number | null,
  now: number,
): Pick<BoxRow, 'delete_at' | 'delete_after_min'> => ({
  delete_at: minutes === null ? null : now + minutes * 60_000,
  delete_after_min: minutes,
})

type NewBox = {
  /** Default, and null: a new one. */
  id?: string | null
  input: Omit<CreateBoxRequest, 'name'>
  /** The snapshot whose files the box gets; null: the box starts empty. */
  source: SnapshotRow | null
  environment: PinnedEnvironment | null
  /** The secret files that `source` has. Default: none. */
  copiedFiles?: readonly string[]
  machine: MachineChoice
  /** null: an enrolled machine. */
  host: string | null
  actor: Actor
  ownerUserId: string
  hostname: string
  now: number
}

export function newBoxRow(box: NewBox): BoxRow {
  const { id, input, source, environment, machine, host, actor, ownerUserId, hostname, now } = box
  const { copiedFiles = [] } = box
  const isRestricted =
    input.restricted ||
    source?.restricted === 1 ||
    environment?.toggles.restricted ||
    // Spec §4.3.
    actor.role === 'contractor'
  return {
    id: id ?? newUuid(),
    kind: 'managed',
    workspace_id: actor.workspaceId,
    owner_user_id: ownerUserId,
    hostname,
    tier: input.tier ?? DEFAULT_TIER,
    region: machine.region,
    provider: machine.provider,
    host,
    image: machine.image,
    image_digest: machine.imageDigest,
    desired_region: null,
    desired_state: 'running',
    observed_state: 'requested',
    state_since: now,
    auto_pause_min: input.autoPauseMin ?? null,
    pause_at: input.ttlMinutes === undefined ? null : now + input.ttlMinutes * 60_000,
    ...toDeletion(input.deleteAfterMinutes ?? null, now),
    auto_snapshot_hours: null,
    auto_snapshot_keep: LIMITS.autoSnapshotKeep.default,
    quiet_hours_exempt: 0,
    restricted: isRestricted ? 1 : 0,
    environment_id: environment?.id ?? null,
    environment_version_no: environment?.versionNo ?? null,
    env_vars: source && !input.env ? source.env_vars : serializeEnvVars(input.env ?? {}),
    labels: input.labels ? changeLabels(NO_LABELS, input.labels) : (source?.labels ?? NO_LABELS),
    environment_vars: JSON.stringify(environment?.vars ?? []),
    mount_vars: '[]',
    applied_version_no: null,
    stale_files: JSON.stringify(copiedFiles),
    suspended_as: null,
    archive_id: null,
    archive_bytes: null,
    leftovers: null,
    source_snapshot_id: source?.id ?? null,
    isolation: null,
    agent_token_hash: null,
    agent_lineage: null,
    report_epoch: null,
    report_seq: 0,
    agent_version: null,
    agent_failure: null,
    agent_failure_dismissed: 0,
    boot_id: null,
    pauses_survived: 0,
    vitals: null,
    last_heartbeat_at: null,
    listening_ports: null,
    machine: null,
    created_at: now,
    updated_at: now,
    terminated_at: null,
  }
}
