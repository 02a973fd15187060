// Describes a directory tree, to compare a tree with its copy.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from 'node:fs'
import { findProgram } from './requires.ts'

export type ManifestOptions = {
  /** The owner of the box's files; shown as `box`. Default: this user. */
  uid?: number
  /** Relative paths that are omitted with all that is below them. */
  except?: readonly string[]
}

const MIB = 1024 ** 2
/** Of larger files, which are sparse, only the first and the last MiB are hashed. */
const MAX_HASHED_BYTES = 1024 * MIB
const MAX_OUTPUT_BYTES = 64 * MIB

const KINDS = [
  ['directory', constants.S_IFDIR],
  ['file', constants.S_IFREG],
  ['symlink', constants.S_IFLNK],
  ['fifo', constants.S_IFIFO],
  ['socket', constants.S_IFSOCK],
  ['character device', constants.S_IFCHR],
  ['block device', constants.S_IFBLK],
] as const

/**
 * One line per entry, in the order of the paths: path, kind, mode, owner, modification time in ns, and of a file its size, whether it is sparse,
 * its SHA-256 and the first path with the same inode; of a symlink its target. Extended attributes where getfattr is installed.
 * Needs the permission to read every file. Names are escaped, so that any bytes can be compared.
 */
export function describeTree(
  root: string,
  { uid = process.getuid?.() ?? 0, except = [] }: ManifestOptions = {},
): string[] {
  const lines: string[] = []
  const firstPaths = new Map<bigint, string>()

  function describe(path: Buffer, name: string): void {
    const stats = lstatSync(path, { bigint: true })
    const kind = KINDS.find(([, bits]) => (Number(stats.mode) & constants.S_IFMT) === bits)?.[0]
    const owner = [stats.uid, stats.gid].map((id) => (id === BigInt(uid) ? 'box' : `${id}`)).join(':')
    const fields = [name, kind, (Number(stats.mode) & 0o7777).toString(8), owner, `mtime=${stats.mtimeNs}`]
    if (kind === 'symlink') fields.push(`-> ${escapeName(readlinkSync(path, 'buffer'))}`)
    if (kind === 'file') {
      const isSparse = stats.size > 0n && stats.blocks * 512n < stats.size
      fields.push(`size=${stats.size}`, isSparse ? 'sparse' : 'full', hashFile(path))
    }
    if (kind !== 'directory' && stats.nlink > 1n) {
      const first = firstPaths.get(stats.ino) ?? name
      firstPaths.set(stats.ino, first)
      fields.push(`links=${stats.nlink}`, `inode of ${first}`)
    }
    lines.push(fields.join(' '))
    if (kind !== 'directory') return
    for (const child of readdirSync(path, { encoding: 'buffer' }).sort(Buffer.compare)) {
      const childName = name === '.' ? escapeName(child) : `${name}/${escapeName(child)}`
      if (!except.includes(childName)) describe(Buffer.concat([path, Buffer.from('/'), child]), childName)
    }
  }

  describe(Buffer.from(root), '.')
  return [...lines, ...listAttributes(root, uid)]
}

/** Bytes outside printable ASCII, and the backslash, as \xNN. */
const escapeName = (bytes: Buffer): string =>
  [...bytes]
    .map((byte) =>
      byte > 0x20 && byte < 0x7f && byte !== 0x5c ? String.fromCharCode(byte) : `\\x${byte.toString(16)}`,
    )
    .join('')

function hashFile(path: Buffer): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const hash = createHash('sha256')
    const { size } = fstatSync(file)
    const ranges =
      size > MAX_HASHED_BYTES
        ? [0, size - MIB]
        : Array.from({ length: Math.ceil(size / MIB) }, (_, i) => i * MIB)
    const block = Buffer.allocUnsafe(MIB)
    for (const offset of ranges) hash.update(block.subarray(0, readSync(file, block, 0, MIB, offset)))
    return hash.digest('hex')
  } finally {
    closeSync(file)
  }
}

/** User attributes and access control lists, with the owner's user id as `box`. */
function listAttributes(root: string, uid: number): string[] {
  if (findProgram('getfattr') === undefined) return []
  const args = ['-R', '-h', '-d', '-m', '^(user[.]|system[.]posix_acl)', '-e', 'hex', '.']
  // getfattr fails where this user may not read a directory.
  const { stdout } = spawnSync('getfattr', args, {
    cwd: root,
    encoding: 'latin1',
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    maxBuffer: MAX_OUTPUT_BYTES,
  })
  const uidBytes = Buffer.alloc(4)
  uidBytes.writeUInt32LE(uid)
  const files = stdout.split('\n\n').filter((text) => text !== '')
  return files
    .map((text) => text.trim().split('\n').join(' ').replaceAll(uidBytes.toString('hex'), '(box)'))
    .sort()
}
