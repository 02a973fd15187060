// Searches files, memory and text for values in all encodings in which a value may have leaked.
import { closeSync, lstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib'

/** Of a file or memory that is searched at a time. */
const BLOCK_BYTES = 4 * 1024 * 1024
const ZSTD_MAGIC = Buffer.from('28b52ffd', 'hex')
const GZIP_MAGIC = Buffer.from('1f8b', 'hex')
const ZLIB_MAGIC = Buffer.from('78', 'hex')

/**
 * The text in each encoding. In all but plain text, hex and UTF-16, the text must consist of letters and digits, which JSON, HTML,
 * shells and URLs do not encode.
 */
export function listEncodings(text: string): Buffer[] {
  const bytes = Buffer.from(text)
  const hex = bytes.toString('hex')
  return [text, hex, hex.toUpperCase(), ...listBase64(bytes)]
    .map((encoded) => Buffer.from(encoded))
    .concat(Buffer.from(text, 'utf16le'))
}

/** At each alignment, without the characters that also depend on the bytes before and after. */
function listBase64(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), bytes])
    const [start, end] = [Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6)]
    return (['base64', 'base64url'] as const).map((encoding) => padded.toString(encoding).slice(start, end))
  })
}

export class Search {
  readonly #needles: { name: string; encodings: Buffer[] }[]
  /** The names of the values that were found, with details, by location. */
  readonly #found = new Map<string, Map<string, string>>()

  constructor(values: Readonly<Record<string, string>>) {
    this.#needles = Object.entries(values).map(([name, text]) => ({ name, encodings: listEncodings(text) }))
  }

  /** The names of the values that the location has. */
  list(location: string): string[] {
    return [...(this.#found.get(location)?.keys() ?? [])].sort()
  }

  /** Where the value was found, for messages. */
  describe(name: string): string[] {
    return [...this.#found].flatMap(([location, found]) => {
      const detail = found.get(name)
      return detail === undefined ? [] : [`${location}: ${detail}`]
    })
  }

  /** Also searches the content of compressed bytes. */
  add(location: string, content: Uint8Array | string, detail = ''): void {
    const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
    this.#searchBlock(location, bytes, detail)
    const expanded = expand(bytes)
    if (expanded !== null) this.#searchBlock(location, expanded, `${detail} (decompressed)`)
  }

  addFile(location: string, path: string): void {
    withFile(path, (fd) => {
      this.#searchRange(location, fd, { start: 0, end: Number.POSITIVE_INFINITY, detail: path })
      if (path.includes('/chunks/')) this.add(location, readFileSync(path), path)
    })
  }

  /** Searches all files of the directory, and their names. */
  addDirectory(location: string, dir: string): void {
    for (const name of readdirSync(dir)) {
      const path = join(dir, name)
      this.add(location, name, `the name of ${path}`)
      const entry = lstatSync(path, { throwIfNoEntry: false })
      if (entry?.isDirectory()) this.addDirectory(location, path)
      else if (entry?.isFile()) this.addFile(location, path)
    }
  }

  /** Searches the readable memory of the process. */
  addMemory(location: string, pid: number): void {
    withFile(`/proc/${pid}/mem`, (fd) => {
      for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
        const [, start = '', end = '', rest = ''] = /^(\w+)-(\w+) (r.*)$/.exec(line) ?? []
        if (rest === '' || /\[v(var|syscall)/.test(rest)) continue
        const range = { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16) }
        this.#searchRange(location, fd, { ...range, detail: `memory of ${pid}: ${rest}` })
      }
    })
  }

  #searchRange(
    location: string,
    fd: number,
    { start, end, detail }: { start: number; end: number; detail: string },
  ): void {
    // The end of each block is searched again with the next one.
    const overlap = 1024
    const block = Buffer.alloc(BLOCK_BYTES + overlap)
    let kept = 0
    for (let position = start; position < end; ) {
      let count = 0
      try {
        count = readSync(fd, block, kept, Math.min(BLOCK_BYTES, end - position), position)
      } catch (error) {
        // Pages without memory, such as those behind the end of a mapped file.
        if (['EIO', 'EFAULT'].includes((error as NodeJS.ErrnoException).code ?? '')) return
        throw error
      }
      if (count === 0) return
      position += count
      const filled = kept + count
      this.#searchBlock(location, block.subarray(0, filled), detail)
      kept = Math.min(overlap, filled)
      block.copyWithin(0, filled - kept, filled)
    }
  }

  #searchBlock(location: string, block: Buffer, detail: string): void {
    for (const { name, encodings } of this.#needles) {
      const found = encodings.find((encoding) => block.includes(encoding))
      if (found === undefined) continue
      const locations = this.#found.get(location) ?? new Map<string, string>()
      this.#found.set(location, locations)
      if (!locations.has(name)) locations.set(name, `${detail}, as ${found}`)
    }
  }
}

/** null: not compressed. */
function expand(bytes: Buffer): Buffer | null {
  const startsWith = (magic: Buffer) => bytes.subarray(0, magic.length).equals(magic)
  const decompress = startsWith(ZSTD_MAGIC)
    ? zstdDecompressSync
    : startsWith(GZIP_MAGIC)
      ? gunzipSync
      : startsWith(ZLIB_MAGIC)
        ? inflateSync
        : null
  try {
    return decompress?.(bytes) ?? null
  } catch {
    return null
  }
}

/** Ends without an error when the file was removed, or the process of a file in /proc has exited. */
function withFile(path: string, read: (fd: number) => void): void {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    read(fd)
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
