// The rules of snapshots (spec §2.4, §5, §7.1). Pure functions of rows and times.
import type { Machine, Vitals } from '../../shared/api/boxes.ts'
import { ApiError } from '../../shared/errors.ts'
import { TIERS, type Tier } from '../../shared/tiers.ts'
import type { BoxRow, SnapshotRow } from '../db/schema.ts'
import type { Actor } from '../http/actor.ts'
import { findMachineFilesProblem } from '../machines/refusals.ts'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
/** When a fork has not finished after this time, the copy that it made is deleted. */
export const TRANSIENT_LIFETIME_MS = DAY_MS
const AUTO_MIN_LIFETIME_MS = 7 * DAY_MS
const GB = 1000 ** 3

/** Spec §5.6, §5.9: a snapshot is visible to the actors that may see its box. */
export function canSeeSnapshot(
  actor: Actor,
  row: Pick<SnapshotRow, 'workspace_id' | 'box_id' | 'owner_user_id'>,
): boolean {
  if (row.workspace_id !== actor.workspaceId) return false
  if (actor.boxIds && !actor.boxIds.includes(row.box_id)) return false
  return actor.role !== 'contractor' || row.owner_user_id === actor.userId
}

/** Throws no_volume for a box whose files do not exist, or are in the archive of its deep sleep. */
export function assertHasFiles(box: BoxRow): void {
  const problem = findFilesProblem(box)
  if (problem !== null) throw new ApiError('no_volume', problem)
}

/** Why the files of the box cannot be captured; null: they can. */
export function findFilesProblem(box: BoxRow): string | null {
  const { hostname, observed_state: state, desired_state } = box
  if (desired_state === 'terminated' || state === 'terminating' || state === 'terminated')
    return `Box ${hostname} has been deleted. Use another box.`
  const machineProblem = findMachineFilesProblem(box)
  if (machineProblem !== null) return machineProblem
  if (state === 'requested' || state === 'provisioning')
    return `Box ${hostname} has no files yet. Try again when it is running.`
  if (state === 'provision_failed') return `Box ${hostname} could not be created. Delete it.`
  if (state === 'deep_sleep')
    return `Box ${hostname} is in deep sleep. Wake it with \`box wake ${hostname}\`, then try again.`
  return null
}

/** Throws restore_tier_not_allowed when the files do not fit on the disk of the tier. */
export function assertFits(tier: Tier, contentBytes: number | null): void {
  const problem = findSizeProblem(tier, contentBytes)
  if (problem !== null) throw new ApiError('restore_tier_not_allowed', problem)
}

export function findSizeProblem(tier: Tier, contentBytes: number | null): string | null {
  if (contentBytes === null || contentBytes <= TIERS[tier].diskGb * GB) return null
  return `The files need ${(contentBytes / GB).toFixed(1)} GB, and the disk of tier ${tier} has ${TIERS[tier].diskGb} GB. Choose a larger tier.`
}

/** The disk space that the files of the box occupied at its last heartbeat; null: not known. */
export function estimateContentBytes({ vitals, machine }: BoxRow): number | null {
  const diskPct = vitals === null ? null : (JSON.parse(vitals) as Vitals).disk_pct
  const diskBytes = machine === null ? null : (JSON.parse(machine) as Machine).diskBytes
  return diskPct === null || diskBytes === null ? null : (diskBytes * diskPct) / 100
}

/** 7 days, or longer than the snapshots that the box keeps are needed. */
export function computeAutoExpiry(
  { auto_snapshot_hours: hours, auto_snapshot_keep: keep }: BoxRow,
  now: number,
): number {
  return now + Math.max(AUTO_MIN_LIFETIME_MS, (hours ?? 0) * (keep + 1) * HOUR_MS)
}

/** A name for a snapshot that the client has not named, such as apple-fork-20300102T030405Z. */
export const createSnapshotName = (hostname: string, kind: 'fork' | 'auto' | 'final', now: number): string =>
  `${hostname}-${kind}-${new Date(now).toISOString().replace(/[-:]|\.\d+/g, '')}`
