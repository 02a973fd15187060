// Randomness that a seed brings back.

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = items.map((item) => ({ item, at: random() }))
  return order.sort((a, b) => a.at - b.at).map(({ item }) => item)
}

export function randomBuffer(size: number, random: () => number): Buffer {
  const buffer = Buffer.alloc(size)
  for (let at = 0; at + 4 <= size; at += 4) buffer.writeUInt32LE(Math.floor(random() * 2 ** 32), at)
  return buffer
}
