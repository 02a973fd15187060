// Finds any of several byte strings in a stream: the algorithm of Aho and Corasick. Each byte of the stream is read once, whatever
// the number and the content of the byte strings is.

/** A part of the data, as offsets. */
export type Range = { start: number; end: number }

/** The state before the first byte of a stream. */
export const START = 0

/**
 * Bytes that are equal for the search: a letter and its other case, and the characters in which base64 and base64url differ. So
 * one byte string stands for a value in both alphabets, and for escapes such as %2F and \u00E9 in both cases.
 */
const FOLDED = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x41 && byte <= 0x5a) return byte + 0x20
  if (byte === 0x2b) return 0x2d
  return byte === 0x2f ? 0x5f : byte
})

/** Returns a copy in which equal bytes are the same. */
export function fold(bytes: Buffer): Buffer {
  const folded = Buffer.from(bytes)
  for (let index = 0; index < folded.length; index += 1) folded[index] = FOLDED[folded[index] ?? 0] ?? 0
  return folded
}

/** In `#edges`: the node has no child that follows it. */
const NO_CHILD = 0x100
const CHILD = 0x1ff
/** In `#edges`: the node has further children in `#branches`. */
const HAS_BRANCHES = 0x200
const BYTES_PER_NODE = Uint16Array.BYTES_PER_ELEMENT + 2 * Uint32Array.BYTES_PER_ELEMENT
/** An entry of a Map with numbers, at most. */
const BYTES_PER_BRANCH = 64

/** Immutable. A state of a search is the number of a node of the trie of the needles. */
export class Matcher {
  /** The nodes after the root, whose number is 0: a child has the number after its parent, unless it is in #branches. */
  #count = 1
  /** The byte of the edge from a node to the next one, or NO_CHILD; and HAS_BRANCHES. */
  readonly #edges: Uint16Array
  /** The node of the longest proper suffix. */
  readonly #suffixes: Uint32Array
  /** The length of the longest needle with which the text of the node ends, or 0. */
  readonly #matches: Uint32Array
  /** The children of the root, by byte. */
  readonly #roots = new Uint32Array(256)
  /** By byte, also those that are not folded: whether the root has a child. */
  readonly #isFirst: Uint8Array
  /** The other children that do not follow their parent, by `256 * parent + byte`. */
  readonly #branches = new Map<number, number>()
  /** Where the depth of a node is not one more than that of the node before it: these nodes, ascending, and their depths. */
  readonly #chains: { node: number; depth: number }[] = []

  /** @param needles each has at least one byte */
  constructor(needles: readonly Buffer[]) {
    const maxCount = 1 + needles.reduce((sum, { length }) => sum + length, 0)
    this.#edges = new Uint16Array(maxCount).fill(NO_CHILD)
    this.#suffixes = new Uint32Array(maxCount)
    this.#matches = new Uint32Array(maxCount)
    for (const needle of needles) this.#insert(fold(needle))
    this.#isFirst = FOLDED.map((byte) => Number(this.#roots[byte] !== 0))
    this.#linkSuffixes()
  }

  /** The memory that it occupies, in bytes. */
  get size(): number {
    return this.#edges.length * BYTES_PER_NODE + this.#branches.size * BYTES_PER_BRANCH
  }

  #insert(needle: Buffer): void {
    let node = START
    for (let index = 0; index < needle.length; index += 1) {
      const byte = needle[index] ?? 0
      const child = this.#findChild(node, byte)
      node = child === 0 ? this.#addChild(node, byte, index + 1) : child
    }
    this.#matches[node] = needle.length
  }

  #addChild(parent: number, byte: number, depth: number): number {
    const child = this.#count
    this.#count += 1
    if (parent === START) this.#roots[byte] = child
    else if (parent === child - 1) this.#edges[parent] = byte
    else {
      this.#branches.set(256 * parent + byte, child)
      this.#edges[parent] = (this.#edges[parent] ?? NO_CHILD) | HAS_BRANCHES
    }
    if (parent !== child - 1 || parent === START) this.#chains.push({ node: child, depth })
    return child
  }

  /** 0: none. */
  #findChild(node: number, byte: number): number {
    if (node === START) return this.#roots[byte] ?? 0
    const edge = this.#edges[node] ?? NO_CHILD
    if ((edge & CHILD) === byte) return node + 1
    return (edge & HAS_BRANCHES) === 0 ? 0 : (this.#branches.get(256 * node + byte) ?? 0)
  }

  /** In the order of their depth: the suffixes of a node are shorter. */
  #linkSuffixes(): void {
    const branches = Map.groupBy(this.#branches, ([key]) => Math.floor(key / 256))
    const queue = new Uint32Array(this.#count)
    let length = 0
    for (const child of this.#roots) if (child !== 0) queue[length++] = child
    for (let position = 0; position < length; position += 1) {
      const node = queue[position] ?? 0
      const edge = this.#edges[node] ?? NO_CHILD
      if ((edge & CHILD) !== NO_CHILD) {
        this.#linkSuffix(node, edge & CHILD, node + 1)
        queue[length++] = node + 1
      }
      if ((edge & HAS_BRANCHES) === 0) continue
      for (const [key, child] of branches.get(node) ?? []) {
        this.#linkSuffix(node, key % 256, child)
        queue[length++] = child
      }
    }
  }

  #linkSuffix(parent: number, byte: number, child: number): void {
    const suffix = this.#advance(this.#suffixes[parent] ?? 0, byte)
    this.#suffixes[child] = suffix
    if (this.#matches[child] === 0) this.#matches[child] = this.#matches[suffix] ?? 0
  }

  /** The state after the byte, which is folded. */
  #advance(from: number, byte: number): number {
    let node = from
    for (;;) {
      const child = this.#findChild(node, byte)
      if (child !== 0 || node === START) return child
      node = this.#suffixes[node] ?? 0
    }
  }

  /** The offset of the next byte with which a needle begins. Most bytes of a response are no such bytes. */
  #skip(data: Buffer, from: number): number {
    let index = from
    while (index < data.length && this.#isFirst[data[index] ?? 0] === 0) index += 1
    return index
  }

  /**
   * Reads the data from an offset on, and returns the new state.
   * @param found gets the parts that are needles, in their order, as parts that do not overlap. A part may start before the
   *   offset, up to countPending() bytes
   */
  scan(data: Buffer, { from, state, found }: { from: number; state: number; found: Range[] }): number {
    let node = state
    for (let index = from; index < data.length; index += 1) {
      if (node === START) index = this.#skip(data, index)
      if (index === data.length) break
      node = this.#advance(node, FOLDED[data[index] ?? 0] ?? 0)
      const length = this.#matches[node] ?? 0
      if (length > 0) addRange(found, index + 1 - length, index + 1)
    }
    // A node without children has the same continuations as its suffix.
    while (node !== START && this.#edges[node] === NO_CHILD) node = this.#suffixes[node] ?? 0
    return node
  }

  /** The number of bytes before this state that may be the start of a needle. */
  countPending(state: number): number {
    if (state === START) return 0
    let low = 0
    let high = this.#chains.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#chains[middle]?.node ?? 0) <= state) low = middle
      else high = middle
    }
    const { node = 0, depth = 0 } = this.#chains[low] ?? {}
    return depth + state - node
  }
}

/** Merges the range with those before it that it touches. @param end not before that of the last range */
function addRange(found: Range[], start: number, end: number): void {
  let first = start
  for (let last = found.at(-1); last !== undefined && last.end >= start; last = found.at(-1)) {
    first = Math.min(first, last.start)
    found.pop()
  }
  found.push({ start: first, end })
}
