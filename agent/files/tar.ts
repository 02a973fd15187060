// The tar format, one 512-byte header at a time. In GNU's form, whose names are plain bytes: what npm's `tar` writes
// cannot hold a name that is not UTF-8, and its packer fails on a file that grows or goes away meanwhile.

const BLOCK = 512

/** The two empty blocks that end an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK)

export type TarEntry = {
  /** Relative, without a slash at the end. */
  name: Buffer
  type: 'file' | 'directory' | 'symlink' | 'link'
  /** Where a symlink points, or the name of the entry that a hard link repeats. */
  target?: Buffer
  /** Bytes that follow, padded to a block; 0 unless it is a file. */
  size: number
  /** Permission bits. */
  mode: number
  uid: number
  gid: number
  /** Seconds since the epoch. */
  mtime: number
}

const TYPES = { file: '0', link: '1', symlink: '2', directory: '5' } as const

/** The zeros after `size` bytes of a file. */
export const padding = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK)

/** What goes before the bytes of an entry. */
export function tarHeader(entry: TarEntry): Buffer {
  const name = entry.type === 'directory' ? Buffer.concat([entry.name, Buffer.from('/')]) : entry.name
  const target = entry.target ?? Buffer.alloc(0)
  const blocks: Buffer[] = []
  if (target.length > 100) blocks.push(longName('K', target))
  if (name.length > 100) blocks.push(longName('L', name))
  blocks.push(block(name, TYPES[entry.type], entry, target))
  return Buffer.concat(blocks)
}

/** A name that does not fit its field goes before the entry, as the content of one of its own. */
function longName(type: 'K' | 'L', name: Buffer): Buffer {
  const size = name.length + 1
  const entry = { size, mode: 0, uid: 0, gid: 0, mtime: 0 }
  const header = block(Buffer.from('././@LongLink'), type, entry, Buffer.alloc(0))
  return Buffer.concat([header, name, Buffer.alloc(1), padding(size)])
}

type Numbers = Pick<TarEntry, 'size' | 'mode' | 'uid' | 'gid' | 'mtime'>

function block(name: Buffer, type: string, numbers: Numbers, target: Buffer): Buffer {
  const header = Buffer.alloc(BLOCK)
  name.copy(header, 0, 0, 100)
  writeNumber(header, 100, 8, numbers.mode)
  writeNumber(header, 108, 8, numbers.uid)
  writeNumber(header, 116, 8, numbers.gid)
  writeNumber(header, 124, 12, numbers.size)
  writeNumber(header, 136, 12, Math.max(0, Math.floor(numbers.mtime)))
  // The checksum is taken with its own field full of spaces.
  header.fill(' ', 148, 156)
  header.write(type, 156, 'latin1')
  target.copy(header, 157, 0, 100)
  header.write('ustar  \0', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}

/** Octal, or big-endian binary with the top bit set when it does not fit. */
function writeNumber(header: Buffer, offset: number, length: number, value: number): void {
  const octal = value.toString(8)
  if (octal.length < length) {
    header.write(`${octal.padStart(length - 1, '0')}\0`, offset, 'latin1')
  } else {
    header[offset] = 0x80
    header.writeUIntBE(value, offset + length - 6, 6)
  }
}
