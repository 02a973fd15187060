// Chance that comes again with the same seed.

export type Random = {
  /** From 0 to below `limit`. */
  below(limit: number): number
  bytes(length: number): Buffer
  pick<T>(from: readonly [T, ...T[]]): T
}

/** mulberry32 */
export function createRandom(seed: number): Random {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  const below = (limit: number) => next() % limit
  return {
    below,
    bytes: (length) => Buffer.from(Uint8Array.from({ length }, () => below(256))),
    pick: (from) => from[below(from.length)] ?? from[0],
  }
}
