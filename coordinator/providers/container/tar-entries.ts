// Reads and writes tar streams entry by entry. Names and attributes remain the same bytes: npm's `tar-stream` and `tar` decode
// them as UTF-8. What an engine reads afterwards is exactly what was checked: every header is written again, in one format.
import { ArchiveError } from '../provider.ts'

const BLOCK_BYTES = 512
/** Extended headers have names and attributes. The attributes of a file have less than this. */
const MAX_EXTENDED_BYTES = 4 * 1024 * 1024
const NAME_BYTES = 100
export const TAR_TRAILER = Buffer.alloc(2 * BLOCK_BYTES)

const TYPES = {
  '\0': 'file',
  '0': 'file',
  '1': 'hard link',
  '2': 'symlink',
  '3': 'device',
  '4': 'device',
  '5': 'directory',
  '6': 'fifo',
} as const
export type EntryType = (typeof TYPES)[keyof typeof TYPES]

/** Extended records whose meaning is known. The prefix has the extended attributes. */
const RECORDS = new Set(['mtime', 'atime', 'ctime', 'uname', 'gname'])
const XATTR_PREFIX = 'SCHILY.xattr.'

/** Texts have one character per byte. */
export type TarEntry = {
  name: string
  /** The target of a link; empty for other entries. */
  linkName: string
  type: EntryType
  size: number
  uid: number
  gid: number
  /** The header as it was read. */
  header: Buffer
  /** The extended records, without those of the fields above. */
  records: ReadonlyMap<string, string>
}

/** An entry that is written, from one that was read. */
export type RewrittenEntry = Pick<TarEntry, 'name'> & Partial<Pick<TarEntry, 'linkName' | 'uid' | 'gid'>>

const damaged = (problem: string): ArchiveError =>
  new ArchiveError(`The tar stream is damaged: ${problem}. Use another snapshot.`)

export class TarReader {
  readonly #source: AsyncIterator<Buffer>
  #buffer: Buffer = Buffer.alloc(0)
  #contentBytes = 0
  #paddingBytes = 0

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Skips the content that was not read. Returns null at the end. Throws ArchiveError when the stream is damaged. */
  async next(): Promise<TarEntry | null> {
    for await (const _ of this.readContent());
    let records = new Map<string, string>()
    for (;;) {
      const header = await this.#read(BLOCK_BYTES)
      if (header.every((byte) => byte === 0)) {
        await this.#drain()
        return null
      }
      if (readNumber(header, 148, 8) !== computeChecksum(header)) throw damaged('a header has the wrong sum')
      const size = readNumber(header, 124, 12)
      if (header[156] === 'x'.charCodeAt(0)) {
        if (!(size <= MAX_EXTENDED_BYTES)) throw damaged('an extended header is too long')
        const content = await this.#read(roundUp(size))
        records = parseRecords(content.subarray(0, size))
      } else return this.#open(header, records)
    }
  }

  #open(header: Buffer, records: Map<string, string>): TarEntry {
    const type = TYPES[String.fromCharCode(header[156] ?? 0) as keyof typeof TYPES]
    if (type === undefined) throw damaged('an entry has an unknown type')
    const take = (key: string): string | undefined => {
      const value = records.get(key)
      records.delete(key)
      return value
    }
    const takeNumber = (key: string, offset: number, length: number): number => {
      const recorded = take(key)
      const value = recorded === undefined ? readNumber(header, offset, length) : Number(recorded)
      if (!Number.isSafeInteger(value) || value < 0) throw damaged(`an entry has no valid ${key}`)
      return value
    }
    const size = takeNumber('size', 124, 12)
    const uid = takeNumber('uid', 108, 8)
    const gid = takeNumber('gid', 116, 8)
    // Engines take what follows such an entry as the next header, whatever its size.
    if (type !== 'file' && size !== 0) throw damaged('an entry that is no file has content')
    const isLink = type === 'hard link' || type === 'symlink'
    const linkName = take('linkpath') ?? readText(header, 157, NAME_BYTES)
    const name = take('path') ?? readName(header)
    for (const key of records.keys())
      if (!RECORDS.has(key) && !key.startsWith(XATTR_PREFIX)) records.delete(key)
    if (name.includes('\0') || linkName.includes('\0')) throw damaged('a name has a zero byte')
    this.#contentBytes = size
    this.#paddingBytes = roundUp(size) - size
    return { name, linkName: isLink ? linkName : '', type, size, uid, gid, header, records }
  }

  /** Yields the rest of the content of the entry, without its padding. */
  async *readContent(): AsyncGenerator<Buffer, void, undefined> {
    while (this.#contentBytes > 0) {
      if (this.#buffer.length === 0) await this.#fill()
      const data = this.#buffer.subarray(0, this.#contentBytes)
      this.#buffer = this.#buffer.subarray(data.length)
      this.#contentBytes -= data.length
      yield data
    }
    const padding = this.#paddingBytes
    this.#paddingBytes = 0
    if (padding > 0) await this.#read(padding)
  }

  /** Ends the source before its end. */
  async close(): Promise<void> {
    await this.#source.return?.()
  }

  async #read(bytes: number): Promise<Buffer> {
    while (this.#buffer.length < bytes) await this.#fill()
    const data = this.#buffer.subarray(0, bytes)
    this.#buffer = this.#buffer.subarray(bytes)
    return data
  }

  async #fill(): Promise<void> {
    const { done, value } = await this.#source.next()
    if (done === true) throw damaged('it is incomplete')
    this.#buffer = this.#buffer.length === 0 ? value : Buffer.concat([this.#buffer, value])
  }

  /** Reads what follows the end of the archive, so that the sender completes. */
  async #drain(): Promise<void> {
    this.#buffer = Buffer.alloc(0)
    while ((await this.#source.next()).done !== true);
  }
}

/**
 * Yields the tar stream with the entries that `rewrite` returns, without the blocks at its end (TAR_TRAILER).
 * @param rewrite null: the entry is omitted. Throws for entries that are not allowed.
 */
export async function* rewriteTar(
  source: AsyncIterable<Buffer>,
  rewrite: (entry: TarEntry, reader: TarReader) => RewrittenEntry | null,
): AsyncGenerator<Buffer, void, undefined> {
  const reader = new TarReader(source)
  try {
    for (let entry = await reader.next(); entry !== null; entry = await reader.next()) {
      const rewritten = rewrite(entry, reader)
      if (rewritten === null) continue
      yield encodeHeader(entry, rewritten)
      yield* reader.readContent()
      yield encodePadding(entry.size)
    }
  } finally {
    await reader.close()
  }
}

/** Encodes the headers of an entry, in the pax format. */
export function encodeHeader(
  { header: original, type, size, records, ...entry }: TarEntry,
  { name, linkName = entry.linkName, uid = entry.uid, gid = entry.gid }: RewrittenEntry,
): Buffer {
  const header = Buffer.from(original)
  const extended = new Map(records)
  const setText = (offset: number, key: string, value: string) => {
    header.fill(0, offset, offset + NAME_BYTES)
    if (value.length > NAME_BYTES) extended.set(key, value)
    header.write(value.slice(0, NAME_BYTES), offset, 'latin1')
  }
  setText(0, 'path', name)
  setText(157, 'linkpath', linkName)
  const setNumber = (offset: number, length: number, key: string, value: number) => {
    const limit = 8 ** (length - 1)
    if (value >= limit) extended.set(key, String(value))
    header.write(`${(value % limit).toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1')
  }
  setNumber(108, 8, 'uid', uid)
  setNumber(116, 8, 'gid', gid)
  setNumber(124, 12, 'size', size)
  if (type === 'file') header.write('0', 156, 'latin1')
  header.write('ustar\x0000', 257, 'latin1')
  // The prefix of the name, which `name` includes.
  header.fill(0, 345)
  writeChecksum(header)
  return extended.size === 0 ? header : Buffer.concat([encodeRecords(extended), header])
}

/** Encodes a regular file with this content. */
export function encodeFile(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  for (const [offset, text] of [
    [100, '0000644'],
    [136, '00000000000'],
  ] as const)
    header.write(text, offset, 'latin1')
  const entry = {
    name,
    linkName: '',
    type: 'file',
    size: content.length,
    uid: 0,
    gid: 0,
    header,
    records: new Map(),
  } as const
  return Buffer.concat([encodeHeader(entry, entry), content, encodePadding(content.length)])
}

export const encodePadding = (size: number): Buffer => Buffer.alloc(roundUp(size) - size)

const roundUp = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES

function readName(header: Buffer): string {
  const name = readText(header, 0, NAME_BYTES)
  // GNU tar uses the field of the prefix otherwise.
  const prefix = header.toString('latin1', 257, 263) === 'ustar\0' ? readText(header, 345, 155) : ''
  return prefix === '' ? name : `${prefix}/${name}`
}

function readText(block: Buffer, offset: number, length: number): string {
  const text = block.toString('latin1', offset, offset + length)
  const end = text.indexOf('\0')
  return end === -1 ? text : text.slice(0, end)
}

/** Octal, or big-endian binary with the top bit set (GNU extension). */
function readNumber(block: Buffer, offset: number, length: number): number {
  if (((block[offset] ?? 0) & 0x80) !== 0) return block.readUIntBE(offset + length - 6, 6)
  const text = readText(block, offset, length).trim()
  return /^[0-7]*$/.test(text) ? Number.parseInt(text || '0', 8) : Number.NaN
}

/** The sum of the bytes, with spaces in place of the sum. */
function computeChecksum(header: Buffer): number {
  let sum = 8 * 32
  for (let offset = 0; offset < BLOCK_BYTES; offset++)
    if (offset < 148 || offset >= 156) sum += header[offset] ?? 0
  return sum
}

function writeChecksum(header: Buffer): void {
  header.write(`${computeChecksum(header).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
}

/** Parses `<length> <key>=<value>\n`, repeated. The length includes itself. An empty value is no record. */
function parseRecords(content: Buffer): Map<string, string> {
  const records = new Map<string, string>()
  for (let offset = 0; offset < content.length; ) {
    const space = content.indexOf(' ', offset)
    const end = offset + Number(content.toString('latin1', offset, space))
    const equals = content.indexOf('=', space)
    if (space === -1 || equals === -1 || !(end > equals && end <= content.length))
      throw damaged('an extended header is damaged')
    const key = content.toString('latin1', space + 1, equals)
    const value = content.toString('latin1', equals + 1, end - 1)
    // A file with this record has another name and size in GNU tar and in the engines.
    if (key.startsWith('GNU.sparse.')) throw damaged('it has a sparse file')
    if (value !== '') records.set(key, value)
    offset = end
  }
  return records
}

function encodeRecords(records: ReadonlyMap<string, string>): Buffer {
  const content = Buffer.concat(
    [...records].map(([key, value]) => {
      const record = ` ${key}=${value}\n`
      let length = record.length
      while (String(length).length + record.length !== length) length = String(length).length + record.length
      return Buffer.from(`${length}${record}`, 'latin1')
    }),
  )
  if (content.length > MAX_EXTENDED_BYTES) throw damaged('the attributes of a file are too long')
  const header = Buffer.from(encodeFile('pax', Buffer.alloc(0)))
  header.write(content.length.toString(8).padStart(11, '0'), 124, 'latin1')
  header.write('x', 156, 'latin1')
  writeChecksum(header)
  return Buffer.concat([header, content, encodePadding(content.length)])
}
