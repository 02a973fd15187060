// Seeded random numbers, bytes and choices.
import { createSeededRandom, randomBuffer } from '../support/random.ts'

export type Random = {
  /** An integer from 0 to `limit` - 1. */
  below(limit: number): number
  bytes(length: number): Buffer
  pick<T>(from: readonly [T, ...T[]]): T
}

export function createRandom(seed: number): Random {
  const next = createSeededRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    bytes: (length) => randomBuffer(length, next),
    pick: (from) => from[below(from.length)] ?? from[0],
  }
}
