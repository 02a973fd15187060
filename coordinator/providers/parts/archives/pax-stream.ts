// Walks through the headers of a tar stream in the pax format, as GNU tar writes it (tar.ts). npm's `tar-stream` would decode
// and encode each header again, and names that are not UTF-8 would change.

export const BLOCK_BYTES = 512
/** Extended headers have names and attributes. The attributes of a file have less than this. */
const MAX_EXTENDED_BYTES = 4 * 1024 * 1024

export type PaxRecord = { key: string; value: string }

export type PaxEntry = {
  /** The block with the attributes of the file. */
  block: Buffer
  /** The extended header before it, with its content; empty when there is none. */
  extended: Buffer
  /** The content of the extended header. Bytes as latin1. */
  records: readonly PaxRecord[]
}

export class PaxStream {
  readonly #onEntry: (entry: PaxEntry) => readonly Buffer[] | null
  /** The beginning of a header, or an extended header whose content is incomplete. */
  #incomplete = Buffer.alloc(0)
  /** The extended header of the next entry. */
  #extended = Buffer.alloc(0)
  #records: readonly PaxRecord[] = []
  /** Bytes of the current entry that follow. */
  #contentBytes = 0
  #isSelected = true
  #isAtEnd = false

  /** @param onEntry returns the headers that replace those of the entry; null removes it with its content */
  constructor(onEntry: (entry: PaxEntry) => readonly Buffer[] | null) {
    this.#onEntry = onEntry
  }

  /** Returns the selected part of the stream. */
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
    return selected.length === 1 && selected[0] ? selected[0] : Buffer.concat(selected)
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
      this.#records = parseRecords(block.subarray(BLOCK_BYTES, BLOCK_BYTES + size))
      this.#extended = block
      return
    }
    if (block.every((byte) => byte === 0)) {
      this.#isAtEnd = true
      selected.push(block)
      return
    }
    const size = this.#records.findLast(({ key }) => key === 'size')
    this.#contentBytes = roundUp(size === undefined ? readNumber(block, 124, 12) : Number(size.value))
    const headers = this.#onEntry({ block, extended: this.#extended, records: this.#records })
    this.#isSelected = headers !== null
    selected.push(...(headers ?? []))
    this.#extended = Buffer.alloc(0)
    this.#records = []
  }
}

const roundUp = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES

/** Whether the header has the attributes of the next entry. */
const isExtended = (header: Buffer): boolean => header[156] === 'x'.charCodeAt(0)

/** Bytes as latin1. */
export function readText(block: Buffer, offset: number, length: number): string {
  const text = block.toString('latin1', offset, offset + length)
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

/** Octal, or big-endian binary with the top bit set (GNU extension). */
export function readNumber(block: Buffer, offset: number, length: number): number {
  const first = block[offset] ?? 0
  if ((first & 0x80) !== 0) return block.readUIntBE(offset + length - 6, 6)
  return Number.parseInt(readText(block, offset, length).trim() || '0', 8)
}

/** Returns a copy of the block with the number in octal, and its checksum. */
export function withNumber(block: Buffer, offset: number, length: number, value: number): Buffer {
  const changed = Buffer.from(block)
  changed.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1')
  changed.write(' '.repeat(8), 148, 'latin1')
  const sum = changed.subarray(0, BLOCK_BYTES).reduce((total, byte) => total + byte, 0)
  changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return changed
}

/** Parses `<length> <key>=<value>\n`, repeated. The length includes itself. */
function parseRecords(content: Buffer): PaxRecord[] {
  const records: PaxRecord[] = []
  for (let offset = 0; offset < content.length; ) {
    const space = content.indexOf(' ', offset)
    const end = offset + Number(content.toString('latin1', offset, space))
    const equals = content.indexOf('=', space)
    if (space === -1 || equals === -1 || !(end > equals && end <= content.length))
      throw new Error('An extended header of the archive is damaged.')
    const key = content.toString('latin1', space + 1, equals)
    records.push({ key, value: content.toString('latin1', equals + 1, end - 1) })
    offset = end
  }
  return records
}

/** Returns the extended header with other records; empty without records. */
export function replaceRecords(extended: Buffer, records: readonly PaxRecord[]): Buffer {
  if (records.length === 0) return Buffer.alloc(0)
  const content = Buffer.from(records.map(formatRecord).join(''), 'latin1')
  const padding = Buffer.alloc(roundUp(content.length) - content.length)
  const block = withNumber(extended.subarray(0, BLOCK_BYTES), 124, 12, content.length)
  return Buffer.concat([block, content, padding])
}

function formatRecord({ key, value }: PaxRecord): string {
  const text = ` ${key}=${value}\n`
  let length = text.length
  while (length !== text.length + String(length).length) length = text.length + String(length).length
  return `${length}${text}`
}
