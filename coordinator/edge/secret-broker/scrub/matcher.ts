// Finds any of several byte strings: the algorithm of Wu and Manber, with blocks of two bytes.

/** A part of the data, as offsets. */
export type Range = { start: number; end: number }

const BLOCKS = 65_536
const MAX_SHIFT = 255
/** A longer window would not move further. */
const MAX_WINDOW = MAX_SHIFT + 1

type Needle = {
  bytes: Buffer
  /** The length of the longest proper prefix that is also a suffix, for each prefix (Knuth, Morris and Pratt). */
  borders: Uint32Array
}

export class Matcher {
  readonly #needles: readonly Needle[]
  /** Bytes of the prefixes that the table of shifts is made of. */
  readonly #window: number
  /** How far the window can move when it ends with a block. */
  readonly #shifts: Uint8Array
  /** The needles by the block at the end of their window. */
  readonly #candidates = new Map<number, Buffer[]>()

  /** @param needles at least one; each has 2 bytes or more */
  constructor(needles: readonly Buffer[]) {
    this.#needles = needles.map((bytes) => ({ bytes, borders: findBorders(bytes) }))
    this.#window = Math.min(MAX_WINDOW, ...needles.map(({ length }) => length))
    const maxShift = Math.min(MAX_SHIFT, this.#window - 1)
    this.#shifts = new Uint8Array(BLOCKS).fill(maxShift)
    for (const bytes of needles)
      for (let end = 2; end <= this.#window; end += 1) {
        const block = readBlock(bytes, end)
        const shift = Math.min(maxShift, this.#window - end)
        this.#shifts[block] = Math.min(this.#shifts[block] ?? 0, shift)
        if (end === this.#window) this.#candidates.set(block, [...(this.#candidates.get(block) ?? []), bytes])
      }
  }

  /** The parts of the data that are made of needles, in their order. They do not overlap. */
  findAll(data: Buffer): Range[] {
    const found: Range[] = []
    const shifts = this.#shifts
    let end = this.#window
    while (end <= data.length) {
      const block = readBlock(data, end)
      const shift = shifts[block] ?? 1
      if (shift > 0) {
        end += shift
        continue
      }
      const start = end - this.#window
      for (const bytes of this.#candidates.get(block) ?? [])
        if (
          bytes.length <= data.length - start &&
          data.compare(bytes, 0, bytes.length, start, start + bytes.length) === 0
        )
          addRange(found, start, start + bytes.length)
      end += 1
    }
    return found
  }

  /** The length of the longest end of the data that may be the start of a needle. */
  countPending(data: Buffer): number {
    return this.#needles.reduce((most, needle) => Math.max(most, countPrefix(needle, data)), 0)
  }
}

/** Extends the last range when the new one overlaps it. @param start not before that of the last range */
function addRange(found: Range[], start: number, end: number): void {
  const last = found.at(-1)
  if (last === undefined || start >= last.end) found.push({ start, end })
  else last.end = Math.max(last.end, end)
}

const readBlock = (data: Buffer, end: number): number => ((data[end - 2] ?? 0) << 8) | (data[end - 1] ?? 0)

function findBorders(bytes: Buffer): Uint32Array {
  const borders = new Uint32Array(bytes.length)
  let length = 0
  for (let index = 1; index < bytes.length; index += 1) {
    while (length > 0 && bytes[index] !== bytes[length]) length = borders[length - 1] ?? 0
    if (bytes[index] === bytes[length]) length += 1
    borders[index] = length
  }
  return borders
}

/** The length of the longest proper prefix of the needle with which the data ends. */
function countPrefix({ bytes, borders }: Needle, data: Buffer): number {
  let length = 0
  for (let index = Math.max(0, data.length - bytes.length + 1); index < data.length; index += 1) {
    while (length > 0 && data[index] !== bytes[length]) length = borders[length - 1] ?? 0
    if (data[index] === bytes[length]) length += 1
  }
  return length
}
