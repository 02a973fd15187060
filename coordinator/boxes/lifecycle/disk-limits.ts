// Decides which boxes use too much of a shared disk. Bytes and inodes have the same rules with other limits.
import { TIERS, type Tier, tierInodes } from '../../../shared/tiers.ts'
import type { BoxRow } from '../../db/schema.ts'
import type { DiskSpace } from '../../providers/provider.ts'

type Limit = { fraction: number; max: number }

export type DiskResource = {
  /** The boxes are measured when the free amount has decreased by this part of the total. */
  growth: Limit
  /** Below this free amount the box that grew most is suspended, whatever its size. */
  low: Limit
  /** A new box without files of its user is smaller. */
  minGrowth: number
  maxOf(tier: Tier): number
  /** How much a box of the tier uses, for a sentence. */
  describeUse(size: number, tier: Tier): string
  describeLow(growth: number, free: number): string
}

const GB = 1000 ** 3
/** How long a woken box may stay above its size, so that its files can be deleted. It may not grow in this time. */
const CLEANUP_MS = 10 * 60_000

const formatGb = (bytes: number): string => `${(bytes / GB).toFixed(1)} GB`

export const BYTES: DiskResource = {
  growth: { fraction: 1 / 64, max: GB },
  low: { fraction: 1 / 20, max: 2 * GB },
  minGrowth: 1024 * 1024,
  maxOf: (tier) => TIERS[tier].diskGb * GB,
  describeUse: (size, tier) => `uses ${formatGb(size)} of its ${TIERS[tier].diskGb} GB of disk`,
  describeLow: (growth, free) =>
    `the disk of the machine has only ${formatGb(free)} free, and this box grew by ${formatGb(growth)}: free space on the machine, then wake the box`,
}

/** A program can create tens of thousands of files per second. */
export const INODES: DiskResource = {
  growth: { fraction: 1 / 64, max: 60_000 },
  low: { fraction: 1 / 20, max: 500_000 },
  minGrowth: 100,
  maxOf: tierInodes,
  describeUse: (size, tier) => `has ${size} of its ${tierInodes(tier)} files and directories`,
  describeLow: (growth, free) =>
    `the disk of the machine has space for only ${free} more files, and this box created ${growth}: remove files on the machine, then wake the box`,
}

export type MeasuredBox = { box: BoxRow; size: number }
export type Excess = MeasuredBox & { reason: string }

const limitOf = ({ fraction, max }: Limit, total: number): number => Math.min(total * fraction, max)

/** The limits of one resource of one disk. */
export class DiskLimits {
  readonly #resource: DiskResource
  /** The sizes from which the growth of the boxes counts. A box that is missing here is new. */
  #baseline: Map<string, number> | undefined
  /** The size at which each box was last suspended. */
  readonly #suspendedSizes = new Map<string, number>()
  #measuredFree = 0

  constructor(resource: DiskResource) {
    this.#resource = resource
  }

  /** Whether the boxes must be measured before the next regular measurement. */
  needsMeasurement(space: DiskSpace): boolean {
    const hasFilled = this.#measuredFree - space.free >= limitOf(this.#resource.growth, space.total)
    return this.isLow(space) || hasFilled
  }

  /**
   * Returns the boxes to suspend.
   * @param space the free space before the measurement
   */
  findExcesses(boxes: readonly MeasuredBox[], space: DiskSpace, now: number): Excess[] {
    this.#measuredFree = space.free
    const { describeUse } = this.#resource
    const growthLimit = limitOf(this.#resource.growth, space.total)
    const tooLarge = boxes
      .filter((measured) => this.#isTooLarge(measured, growthLimit, now))
      .map(({ box, size }) => ({
        box,
        size,
        reason: `${describeUse(size, box.tier)}: wake the box and delete files within ${CLEANUP_MS / 60_000} minutes`,
      }))
    return [...tooLarge, ...this.#findFastest(boxes, space, growthLimit)]
  }

  recordSuspension({ box, size }: MeasuredBox): void {
    this.#suspendedSizes.set(box.id, size)
  }

  isLow({ free, total }: DiskSpace): boolean {
    return free < limitOf(this.#resource.low, total)
  }

  #isTooLarge({ box, size }: MeasuredBox, tolerance: number, now: number): boolean {
    if (size <= this.#resource.maxOf(box.tier)) {
      this.#suspendedSizes.delete(box.id)
      return false
    }
    const allowedSize = (this.#suspendedSizes.get(box.id) ?? 0) + tolerance
    return size > allowedSize || now - box.state_since > CLEANUP_MS
  }

  /** The box that grew most, when little is free. Growth counts from the last measurement before. */
  #findFastest(boxes: readonly MeasuredBox[], space: DiskSpace, growthLimit: number): Excess[] {
    const baseline = this.#baseline
    if (!this.isLow(space) || baseline === undefined) {
      this.#baseline = new Map(boxes.map(({ box, size }) => [box.id, size]))
      return []
    }
    const growthOf = ({ box, size }: MeasuredBox) => size - (baseline.get(box.id) ?? 0)
    const fastest = boxes.toSorted((a, b) => growthOf(b) - growthOf(a))[0]
    if (fastest === undefined) return []
    const growth = growthOf(fastest)
    if (growth < Math.max(growthLimit / 16, this.#resource.minGrowth)) return []
    // After it is woken, the box is suspended again only if it grows further.
    baseline.set(fastest.box.id, fastest.size)
    return [{ ...fastest, reason: this.#resource.describeLow(growth, space.free) }]
  }
}
