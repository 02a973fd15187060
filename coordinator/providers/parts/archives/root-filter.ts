// Selects the entries of some directories from a tar stream in the pax format, as GNU tar writes it (tar.ts). npm's `tar-stream`
// would decode and encode each header again, and names that are not UTF-8 would change.
import { PermanentProviderError } from '../../provider.ts'

const BLOCK_BYTES = 512
/** Extended headers have names and attributes. The attributes of a file have less than this. */
const MAX_EXTENDED_BYTES = 4 * 1024 * 1024

type Header = { name: string; linkName: string; type: string; size: number }
type Overrides = Partial<Pick<Header, 'name' | 'linkName' | 'size'>>

export class RootFilter {
  readonly #roots: readonly string[]
  /** The beginning of a header, or an extended header whose content is incomplete. */
  #incomplete = Buffer.alloc(0)
  /** The extended header of the next entry. */
  #extended = Buffer.alloc(0)
  #overrides: Overrides = {}
  /** Bytes of the current entry that follow. */
  #contentBytes = 0
  #isSelected = true
  #isAtEnd = false

  /** @param roots the first components of the selected names */
  constructor(roots: readonly string[]) {
    this.#roots = roots
  }

  /**
   * Returns the selected part of the stream. Throws PermanentProviderError when a selected entry is a hard link to an entry that
   * is not selected.
   */
  push(data: Buffer): Buffer {
    const selected: Buffer[] = []
    let rest = data
    while (rest.length > 0) {
      if (this.#isAtEnd) {
        selected.push(rest)
        break
      }
      if (this.#contentBytes > 0) {
        const content = rest.subarray(0, this.#contentBytes)
        if (this.#isSelected) selected.push(content)
        this.#contentBytes -= content.length
        rest = rest.subarray(content.length)
        continue
      }
      const missing = this.#nextLength() - this.#incomplete.length
      this.#incomplete = Buffer.concat([this.#incomplete, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (this.#incomplete.length === this.#nextLength()) this.#addHeader(selected)
    }
    return Buffer.concat(selected)
  }

  /** The length of the header, with the content of an extended header. */
  #nextLength(): number {
    if (this.#incomplete.length < BLOCK_BYTES || !isExtended(this.#incomplete)) return BLOCK_BYTES
    const size = readNumber(this.#incomplete, 124, 12)
    if (size > MAX_EXTENDED_BYTES) throw new Error('An extended header of the archive is too long.')
    return BLOCK_BYTES + roundUp(size)
  }

  #addHeader(selected: Buffer[]): void {
    const block = this.#incomplete
    this.#incomplete = Buffer.alloc(0)
    if (isExtended(block)) {
      const size = readNumber(block, 124, 12)
      this.#overrides = parseRecords(block.subarray(BLOCK_BYTES, BLOCK_BYTES + size))
      this.#extended = block
      return
    }
    if (block.every((byte) => byte === 0)) {
      this.#isAtEnd = true
      selected.push(block)
      return
    }
    const header = { ...readHeader(block), ...this.#overrides }
    this.#isSelected = this.#isInRoots(header.name)
    if (this.#isSelected && header.type === '1' && !this.#isInRoots(header.linkName))
      throw new PermanentProviderError(
        `The file ${header.name.slice(0, 100).replace(/[^ -~]/g, '?')} is a hard link to a file of the agent, which copies of the box do not have. Wake the box, then try again.`,
      )
    if (this.#isSelected) selected.push(this.#extended, block)
    this.#contentBytes = roundUp(header.size)
    this.#extended = Buffer.alloc(0)
    this.#overrides = {}
  }

  #isInRoots(name: string): boolean {
    return this.#roots.includes(name.split('/', 1)[0] ?? '')
  }
}

const roundUp = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES

/** Whether the header has the attributes of the next entry. */
const isExtended = (header: Buffer): boolean => header[156] === 'x'.charCodeAt(0)

function readHeader(block: Buffer): Header {
  const prefix = readText(block, 345, 155)
  const name = readText(block, 0, 100)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    linkName: readText(block, 157, 100),
    type: String.fromCharCode(block[156] ?? 0),
    size: readNumber(block, 124, 12),
  }
}

/** Bytes that are not UTF-8 do not matter: only the first component of a name is compared. */
function readText(block: Buffer, offset: number, length: number): string {
  const text = block.toString('latin1', offset, offset + length)
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

/** Octal, or big-endian binary with the top bit set (GNU extension). */
function readNumber(block: Buffer, offset: number, length: number): number {
  const first = block[offset] ?? 0
  if ((first & 0x80) !== 0) return block.readUIntBE(offset + length - 6, 6)
  return Number.parseInt(readText(block, offset, length).trim() || '0', 8)
}

/** Parses `<length> <key>=<value>\n`, repeated. The length includes itself. */
function parseRecords(content: Buffer): Overrides {
  const overrides: Overrides = {}
  for (let offset = 0; offset < content.length; ) {
    const space = content.indexOf(' ', offset)
    const end = offset + Number(content.toString('latin1', offset, space))
    const equals = content.indexOf('=', space)
    if (space === -1 || equals === -1 || !(end > equals && end <= content.length))
      throw new Error('An extended header of the archive is damaged.')
    const key = content.toString('latin1', space + 1, equals)
    const value = content.toString('latin1', equals + 1, end - 1)
    if (key === 'path') overrides.name = value
    else if (key === 'linkpath') overrides.linkName = value
    else if (key === 'size') overrides.size = Number(value)
    offset = end
  }
  return overrides
}
