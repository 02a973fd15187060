// Creates random trees of files, and describes them for comparisons.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  type BigIntStats,
  chmodSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Random } from './random.ts'

const MAX_DEPTH = 3
const MAX_NAME_BYTES = 255
const MAX_TIME_SECONDS = 4_000_000_000
const NAMES: [string, ...string[]] = [
  '-rf',
  ...['--', '@name', '*', ' ', "it's", 'a\\nb', '$HOME `id`', '%s', '"', '.hidden', '..twice', '~'],
  ...['line\nbreak', 'end\n', 'grün 🌳', '\uFFFD', 'é', 'e\u0301', 'a:b', '...'],
]

export type TreeOptions = {
  /** Also files and directories that only root can read. */
  hasUnreadable: boolean
  /** An existing directory on the same file system. */
  scratchDir: string
}

export const joinBytes = (directory: Buffer, name: Buffer): Buffer =>
  Buffer.concat([directory, Buffer.from('/'), name])

export function createName(random: Random): Buffer {
  const kind = random.below(4)
  if (kind === 0) return Buffer.from(random.pick(NAMES))
  if (kind === 1) return Buffer.from(`n${random.below(1_000_000)}`)
  const length = 1 + random.below(random.below(4) === 0 ? MAX_NAME_BYTES : 12)
  const bytes = random.bytes(256).subarray(0, length)
  // Not a zero byte, a slash or a dot.
  return bytes.map((byte) => ([0, 0x2f, 0x2e].includes(byte) ? 0xff : byte)) as Buffer
}

/** Creates the tree at `root`, which must not exist. Returns the paths of its files. */
export function createTree(
  random: Random,
  root: Buffer,
  { hasUnreadable, scratchDir }: TreeOptions,
): Buffer[] {
  const files: Buffer[] = []
  const createEntry = (path: Buffer, depth: number) => {
    const kind = random.below(depth < MAX_DEPTH ? 10 : 7)
    if (kind === 0) symlinkSync(createName(random), path)
    else if (kind === 1 && files.length > 0) linkSync(random.pick(files as [Buffer, ...Buffer[]]), path)
    else if (kind === 2) {
      const fifo = join(scratchDir, 'fifo')
      execFileSync('mkfifo', [fifo])
      renameSync(fifo, path)
    } else if (kind < 7) {
      createFile(random, path)
      files.push(path)
    } else fill(path, depth + 1)
    const time = random.below(MAX_TIME_SECONDS) + random.below(1000) / 1000
    if (kind !== 0) chmodSync(path, createMode(random, kind >= 7, hasUnreadable))
    lutimesSync(path, time, time)
  }
  const fill = (directory: Buffer, depth: number) => {
    mkdirSync(directory)
    const names = new Map<string, Buffer>()
    for (let count = random.below(depth === 0 ? 16 : 6); count > 0; count--) {
      const name = createName(random)
      names.set(name.toString('latin1'), name)
    }
    for (const name of names.values()) createEntry(joinBytes(directory, name), depth)
  }
  fill(root, 0)
  chmodSync(root, createMode(random, true, hasUnreadable))
  const time = random.below(MAX_TIME_SECONDS)
  lutimesSync(root, time, time)
  return files
}

/** Also the set-user-ID, set-group-ID and sticky bits. */
function createMode(random: Random, isDirectory: boolean, hasUnreadable: boolean): number {
  const required = hasUnreadable ? 0 : isDirectory ? 0o500 : 0o400
  return random.below(0o10000) | required
}

function createFile(random: Random, path: Buffer): void {
  const size = random.pick([0, 0, 1, 511, 512, 513, 20_000, 128 * 1024, 128 * 1024 + 1, 300_000])
  writeFileSync(path, random.bytes(size))
  // Sparse.
  if (random.below(6) === 0) truncateSync(path, size + random.below(2_000_000))
}

/** Removes some entries of a copy of a tree, and makes the directories accessible. Returns the paths of the directories that are left. */
export function removeSome(random: Random, root: Buffer): string[] {
  const directories: string[] = []
  const prune = (path: Buffer, name: string) => {
    chmodSync(path, 0o700)
    directories.push(name)
    for (const child of readdirSync(path, { encoding: 'buffer' }).toSorted(Buffer.compare)) {
      const childPath = joinBytes(path, child)
      if (lstatSync(childPath).isDirectory()) {
        if (random.below(3) > 0) prune(childPath, `${name}/${child.toString('latin1')}`)
        else removeTree(childPath)
      } else if (random.below(2) === 0) rmSync(childPath)
    }
  }
  prune(root, '')
  return directories
}

function removeTree(path: Buffer): void {
  chmodSync(path, 0o700)
  for (const child of readdirSync(path, { encoding: 'buffer' })) {
    const childPath = joinBytes(path, child)
    if (lstatSync(childPath).isDirectory()) removeTree(childPath)
    else rmSync(childPath)
  }
  rmdirSync(path)
}

export type Description = Record<string, string>

/**
 * Path below `root` → what box cp keeps of it (docs/cli-files.md): the type, the permissions, the time in seconds, the content or the
 * target, and the first of its names in the tree. Paths have one character per byte.
 */
export function describeTree(root: Buffer): Description {
  const description: Description = {}
  const firstNames = new Map<string, string>()
  const describe = (path: Buffer, name: string) => {
    const stats = lstatSync(path, { bigint: true })
    if (stats.isFIFO()) return
    description[name] = `${describeEntry(path, stats)} ${describeLink(stats, name, firstNames)}`
    if (!stats.isDirectory()) return
    const children = readdirSync(path, { encoding: 'buffer' })
    for (const child of children.toSorted(Buffer.compare))
      describe(joinBytes(path, child), `${name}/${child.toString('latin1')}`)
  }
  describe(root, '')
  return description
}

function describeEntry(path: Buffer, stats: BigIntStats): string {
  const time = stats.mtimeNs / 1_000_000_000n
  const mode = (stats.mode & 0o777n).toString(8)
  if (stats.isSymbolicLink()) return `link ${time} ${readlinkSync(path, { encoding: 'latin1' })}`
  if (stats.isDirectory()) return `directory ${mode} ${time}`
  return `file ${mode} ${time} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`
}

function describeLink(stats: BigIntStats, name: string, firstNames: Map<string, string>): string {
  if (!stats.isFile() || stats.nlink === 1n) return ''
  const inode = `${stats.dev}:${stats.ino}`
  const first = firstNames.get(inode)
  if (first === undefined) firstNames.set(inode, name)
  return first === undefined ? '' : `= ${first}`
}
