// Randomness that a failed test can repeat.

/** Mulberry32: numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
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
