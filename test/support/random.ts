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

const PIECES = ['a', 'line\n', '"\\', 'é', '€', '😀', '\0', '\ufeff', '\u2028']
const BROKEN = [
  [0xff],
  [0xc0, 0x80],
  [0xe2, 0x82],
  [0xf0, 0x9f, 0x98],
  [0xed, 0xa0, 0x80],
  [0x80],
  [0xf4, 0x90],
]

/** Text and rubbish mixed: characters of every length, halved ones, and bytes that are none. */
export function mixedBytes(random: () => number, pieces: number): Buffer {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  return Buffer.concat(
    Array.from({ length: pieces }, () =>
      Buffer.from(random() < 0.3 ? pick(BROKEN) : [...Buffer.from(pick(PIECES))]),
    ),
  )
}
