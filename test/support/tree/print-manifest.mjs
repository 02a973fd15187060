// Runs on a box: prints one line of JSON per entry of the tree DIR, sorted by path.
// Needs no permission on the entries: it adds missing ones to its copy of the mode, and restores them.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'

const [root] = process.argv.slice(2)
const toText = (path) => path.toString('latin1')
const join = (dir, name) => Buffer.concat([dir, Buffer.from('/'), name])
/** The first path of each inode. */
const firstPaths = new Map()
const buffer = Buffer.allocUnsafe(1024 * 1024)

function hashFile(path) {
  const hash = createHash('sha256')
  const file = openSync(path, 'r')
  for (;;) {
    const count = readSync(file, buffer)
    if (count === 0) break
    hash.update(buffer.subarray(0, count))
  }
  closeSync(file)
  return hash.digest('hex')
}

/** tar is the only program that every system has and that prints extended attributes. */
function listAttributes(path) {
  const args = ['-c', '--xattrs', '--xattrs-include=*', '--format=pax', '--no-recursion', '-f', '-']
  const archive = execFileSync('tar', [...args, `./${toText(path)}`], { maxBuffer: 1024 * 1024 })
  return [...archive.toString('latin1').matchAll(/SCHILY\.xattr\.(user\.[^\n]*)\n/g)]
    .map(([, text]) => text)
    .sort()
}

const TYPES = [
  ['isFile', 'file'],
  ['isDirectory', 'directory'],
  ['isSymbolicLink', 'symlink'],
  ['isFIFO', 'fifo'],
]

function withPermissions(path, stats, bits, read) {
  if ((stats.mode & bits) === bits) return read()
  chmodSync(path, (stats.mode & 0o7777) | bits)
  try {
    return read()
  } finally {
    chmodSync(path, stats.mode & 0o7777)
  }
}

function print(path, stats) {
  const type = TYPES.find(([method]) => stats[method]())?.[1] ?? 'other'
  const first = firstPaths.get(stats.ino)
  if (type !== 'directory' && first === undefined) firstPaths.set(stats.ino, toText(path))
  const entry = {
    path: toText(path),
    type,
    mode: (stats.mode & 0o7777).toString(8),
    // The user of the box can have another id in each box.
    owner: stats.uid === process.getuid() ? 'box' : stats.uid,
    group: stats.gid === process.getgid() ? 'box' : stats.gid,
    ...(type === 'directory' ? {} : { links: stats.nlink, sameAs: first ?? null, size: stats.size }),
    // The times of a symlink and of a directory are not always kept by the programs of a user.
    ...(type === 'file'
      ? { mtimeMs: Math.floor(stats.mtimeMs), isSparse: stats.blocks * 512 < stats.size / 2 }
      : {}),
    ...(type === 'symlink' ? { target: toText(readlinkSync(path, { encoding: 'buffer' })) } : {}),
  }
  if (type === 'file' && first === undefined)
    withPermissions(path, stats, 0o400, () => {
      entry.sha256 = stats.size > 2 ** 30 ? hashEnds(path, stats.size) : hashFile(path)
    })
  if (toText(path).endsWith('attributes')) entry.attributes = listAttributes(Buffer.from('attributes'))
  console.log(JSON.stringify(entry))
  if (type === 'directory') walk(path, stats)
}

/** A sparse file: the data in the middle of it. */
function hashEnds(path, size) {
  const hash = createHash('sha256').update(String(size))
  const file = openSync(path, 'r')
  for (const offset of [0, 1024 ** 3 - 4096, 1024 ** 3, size - 4096]) {
    const count = readSync(file, buffer, 0, 4096, offset)
    hash.update(buffer.subarray(0, count))
  }
  closeSync(file)
  return hash.digest('hex')
}

function walk(dir, stats) {
  withPermissions(dir, stats, 0o500, () => {
    const names = readdirSync(dir, { encoding: 'buffer' }).sort(Buffer.compare)
    for (const name of names) {
      const path = join(dir, name)
      print(path, lstatSync(path))
    }
  })
}

process.chdir(root)
const top = Buffer.from('.')
print(top, lstatSync(top))
