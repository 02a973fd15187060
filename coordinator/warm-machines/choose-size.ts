// Decides how many machines of each region are kept ready.

import type { MemoryState } from '../base/memory-pressure.ts'
import type { Provider } from '../providers/provider.ts'

const GIB = 1024 ** 3
/** A machine that waits has an agent, which needs 75 MiB. */
const MIN_AVAILABLE_BYTES = 2 * GIB

/** `reason` is a part of a sentence. */
export type WarmSize = { size: number; reason: string }

/**
 * @param configured BOXWOOD_WARM; null: auto
 * @param warm of the provider of the default region
 */
export function chooseWarmSize(
  configured: number | null,
  warm: Pick<NonNullable<Provider['warm']>, 'problem'> | undefined,
  { availableBytes }: Pick<MemoryState, 'availableBytes'>,
): WarmSize {
  if (configured === 0) return { size: 0, reason: 'as configured with BOXWOOD_WARM' }
  if (warm === undefined) return { size: 0, reason: 'the engine has none' }
  if (warm.problem !== null) return { size: 0, reason: warm.problem }
  if (configured !== null) return { size: configured, reason: 'as configured with BOXWOOD_WARM' }
  const available = `${(availableBytes / GIB).toFixed(1)} GiB of memory are available`
  return availableBytes < MIN_AVAILABLE_BYTES
    ? { size: 0, reason: `only ${available}` }
    : { size: 1, reason: available }
}
