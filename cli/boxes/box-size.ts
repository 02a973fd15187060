// The size of a box, which is that of its tier or of a smaller machine.

import type { BoxDetail } from '../../shared/api/boxes.ts'
import { formatCount } from '../../shared/format-count.ts'
import { TIERS, type Tier } from '../../shared/tiers.ts'
import { sanitize } from '../output/print.ts'

type Size = NonNullable<BoxDetail['size']>

const round = (value: number): string => String(Math.round(value * 10) / 10)

const formatSize = ({ cpus, memoryBytes, diskBytes }: Size): string =>
  `${formatCount(cpus, 'CPU')}, ${round(memoryBytes / 1024 ** 3)} GiB memory, ${round(diskBytes / 1000 ** 3)} GB disk`

/** A newer coordinator may have other tiers. */
function getTierSize(tier: string): Size | undefined {
  if (!Object.hasOwn(TIERS, tier)) return undefined
  const { cpus, memoryBytes, diskGb } = TIERS[tier as Tier]
  return { cpus, memoryBytes, diskBytes: diskGb * 1000 ** 3 }
}

const isSmaller = (size: Size, tierSize: Size): boolean =>
  size.cpus < tierSize.cpus || size.memoryBytes < tierSize.memoryBytes || size.diskBytes < tierSize.diskBytes

/**
 * Such as `nano (1 CPU, 1 GiB memory, 10 GB disk)`; says so when the machine has less than the tier.
 * @param size undefined: not known, such as before the end of a resize; null: an enrolled machine
 */
export function describeTier(tier: string, size: Size | null | undefined): string {
  const tierSize = getTierSize(tier)
  const actual = size ?? tierSize
  if (size === null || actual === undefined) return sanitize(tier)
  return `${sanitize(tier)} (${formatSize(actual)}${describeDifference(actual, tierSize)})`
}

const describeDifference = (size: Size, tierSize: Size | undefined): string =>
  tierSize !== undefined && isSmaller(size, tierSize)
    ? `: limited by the machine; the tier has ${formatSize(tierSize)}`
    : ''

/** Whether the box has less than its tier. */
export function isBounded(tier: string, size: Size | null | undefined): boolean {
  const tierSize = getTierSize(tier)
  return size != null && tierSize !== undefined && isSmaller(size, tierSize)
}
