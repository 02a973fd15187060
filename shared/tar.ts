// Encodes tar headers in the GNU format, whose names are raw bytes. npm's `tar` package cannot write names that are not
// UTF-8, and its packer fails on a file that grows or is deleted while it is packed.

const BLOCK_BYTES = 512

/** Two blocks of zeros. */
export const END_OF_ARCHIVE = Buffer.alloc(2 * BLOCK_BYTES)

export type TarEntry = {
  /** Relative, without a trailing slash. */
  name: Buffer
  type: 'file' | 'directory' | 'symlink' | 'link'
  /** The target of a symlink, or the entry name that a hard link refers to. */
  target?: Buffer
  /** Bytes of content after the header, without the padding; 0 unless the entry is a file. */
  size: number
  /** Permission bits. */
  mode: number
  uid: number
  gid: number
  /** Seconds since the epoch. */
  mtime: number
}

const TYPE_FLAGS = { file: '0', link: '1', symlink: '2', directory: '5' } as const

/** The zeros that fill the last block after `size` bytes of content. */
export const createPadding = (size: number): Buffer =>
  Buffer.alloc((BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES)

/** The blocks before an entry's content: its header, preceded by long-name entries if needed. */
export function encodeTarHeader(entry: TarEntry): Buffer {
  const name = entry.type === 'directory' ? Buffer.concat([entry.name, Buffer.from('/')]) : entry.name
  const target = entry.target ?? Buffer.alloc(0)
  const blocks: Buffer[] = []
  if (target.length > 100) blocks.push(createLongNameEntry('K', target))
  if (name.length > 100) blocks.push(createLongNameEntry('L', name))
  blocks.push(createHeaderBlock(name, TYPE_FLAGS[entry.type], entry, target))
  return Buffer.concat(blocks)
}

/**
 * GNU extension: a name of more than 100 bytes is the content of a special entry before the entry itself. Type `L` holds
 * the entry's name, type `K` the target of its link.
 */
function createLongNameEntry(type: 'K' | 'L', name: Buffer): Buffer {
  const size = name.length + 1
  const entry = { size, mode: 0, uid: 0, gid: 0, mtime: 0 }
  const header = createHeaderBlock(Buffer.from('././@LongLink'), type, entry, Buffer.alloc(0))
  return Buffer.concat([header, name, Buffer.alloc(1), createPadding(size)])
}

type NumericFields = Pick<TarEntry, 'size' | 'mode' | 'uid' | 'gid' | 'mtime'>

function createHeaderBlock(name: Buffer, type: string, numbers: NumericFields, target: Buffer): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES)
  name.copy(header, 0, 0, 100)
  writeNumber(header, 100, 8, numbers.mode)
  writeNumber(header, 108, 8, numbers.uid)
  writeNumber(header, 116, 8, numbers.gid)
  writeNumber(header, 124, 12, numbers.size)
  writeNumber(header, 136, 12, Math.max(0, Math.floor(numbers.mtime)))
  // The checksum is computed with spaces in the checksum field.
  header.fill(' ', 148, 156)
  header.write(type, 156, 'latin1')
  target.copy(header, 157, 0, 100)
  header.write('ustar  \0', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

/** Octal, or (GNU extension) big-endian binary with the top bit set when octal does not fit. */
function writeNumber(header: Buffer, offset: number, length: number, value: number): void {
  const octal = value.toString(8)
  if (octal.length < length) {
    header.write(`${octal.padStart(length - 1, '0')}\0`, offset, 'latin1')
  } else {
    header[offset] = 0x80
    header.writeUIntBE(value, offset + length - 6, 6)
  }
}
