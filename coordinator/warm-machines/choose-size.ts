// Decides how many machines wait for a box in each region, and says why.
import type { MemoryState } from '../base/memory-pressure.ts'
import type { ProviderWarmMachines } from '../providers/provider.ts'

const GIB = 1024 ** 3
/** A machine that waits needs about 65 MiB. */
const MIN_AVAILABLE_BYTES = 2 * GIB

export type WarmSize = {
  /** Of each region in which boxes are created. */
  size: number
  /** A part of a sentence; null: as configured, or the provider has no such machines. */
  reason: string | null
}

/**
 * @param configured BOXWOOD_WARM; null: auto
 * @param warm of the provider whose machines can wait, if one has any
 */
export function chooseWarmSize(
  configured: number | null,
  warm: Pick<ProviderWarmMachines, 'problem'> | undefined,
  { availableBytes }: Pick<MemoryState, 'availableBytes'>,
): WarmSize {
  if (configured === 0 || warm === undefined) return { size: 0, reason: null }
  if (warm.problem !== null) return { size: 0, reason: warm.problem }
  if (configured !== null) return { size: configured, reason: null }
  const available = `${(availableBytes / GIB).toFixed(1)} GiB of memory are available`
  return availableBytes < MIN_AVAILABLE_BYTES
    ? { size: 0, reason: `only ${available}` }
    : { size: 1, reason: available }
}

/** A sentence for the person who starts the coordinator; null: there is nothing to say. */
export function describeWarmSize({ size, reason }: WarmSize): string | null {
  if (size === 0) return reason === null ? null : `No machine is started in advance for new boxes: ${reason}.`
  const what =
    size === 1
      ? 'A machine waits for the next box, which then starts'
      : `${size} machines wait for the next boxes, which then start`
  return `${what} in an instant${reason === null ? '' : `: ${reason}`} (BOXWOOD_WARM).`
}
