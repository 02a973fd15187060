// Decides whether a box has files that can be captured, and whether files fit on a disk (spec §2.4, §7.1). Pure functions of rows.
import type { Vitals } from '../../../shared/api/boxes.ts'
import type { Machine } from '../../../shared/api/machine.ts'
import { ApiError } from '../../../shared/errors.ts'
import { TIERS, type Tier } from '../../../shared/tiers.ts'
import type { BoxRow } from '../../db/schema.ts'

const GB = 1000 ** 3

/** Throws no_volume for a box whose files do not exist, or cannot be copied. */
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
  return null
}

/** Why the files of the box cannot be captured; null: they can. */
const findMachineFilesProblem = ({ kind, hostname }: Pick<BoxRow, 'kind' | 'hostname'>) =>
  kind === 'machine'
    ? `Box ${hostname} is an enrolled machine: the coordinator cannot copy its disk. Copy files with \`box cp\`.`
    : null

/** Throws restore_tier_not_allowed when the files do not fit on the disk of the tier. */
export function assertFits(tier: Tier, contentBytes: number | null): void {
  const problem = findSizeProblem(tier, contentBytes)
  if (problem !== null) throw new ApiError('restore_tier_not_allowed', problem)
}

export function findSizeProblem(tier: Tier, contentBytes: number | null): string | null {
  if (contentBytes === null || contentBytes <= TIERS[tier].diskGb * GB) return null
  return `The files need ${(contentBytes / GB).toFixed(1)} GB, and the disk of tier ${tier} has ${TIERS[tier].diskGb} GB. Choose a larger tier.`
}

/** The disk space that the files of the box occupy in its archive, or occupied at its last heartbeat; null: not known. */
export function estimateContentBytes(box: BoxRow): number | null {
  const { observed_state: state, archive_bytes: archiveBytes, vitals, machine } = box
  if (state === 'deep_sleep' && archiveBytes !== null) return archiveBytes
  const diskPct = vitals === null ? null : (JSON.parse(vitals) as Vitals).disk_pct
  const diskBytes = machine === null ? null : (JSON.parse(machine) as Machine).diskBytes
  return diskPct === null || diskBytes === null ? null : (diskBytes * diskPct) / 100
}
