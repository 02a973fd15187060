// Seeded random numbers, orders and bytes.

/** Returns a generator of numbers in [0, 1), which are the same for the same seed (mulberry32). */
export function createSeededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const keyed = items.map((item) => ({ item, key: random() }))
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item)
}

/** @param size in bytes. When `size` is not a multiple of 4, the last bytes are zero. */
export function randomBuffer(size: number, random: () => number): Buffer {
  const buffer = Buffer.alloc(size)
  for (let offset = 0; offset + 4 <= size; offset += 4)
    buffer.writeUInt32LE(Math.floor(random() * 2 ** 32), offset)
  return buffer
}

const VALID_PARTS = ['a', 'line\n', '"\\', 'é', '€', '😀', '\0', '\ufeff', '\u2028']
const INVALID_PARTS = [
  [0xff],
  [0xc0, 0x80],
  [0xe2, 0x82],
  [0xf0, 0x9f, 0x98],
  [0xed, 0xa0, 0x80],
  [0x80],
  [0xf4, 0x90],
]

/** `count` parts of UTF-8 text: characters of every length, truncated characters and invalid bytes. */
export function randomMalformedUtf8(random: () => number, count: number): Buffer {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  return Buffer.concat(
    Array.from({ length: count }, () =>
      Buffer.from(random() < 0.3 ? pick(INVALID_PARTS) : [...Buffer.from(pick(VALID_PARTS))]),
    ),
  )
}
