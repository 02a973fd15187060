// Runs on a box: creates a tree of about `MEBIBYTES` with everything that a file system can contain, from a seed.
// Arguments: DIR MEBIBYTES SEED
import { execFileSync } from 'node:child_process'
import { createCipheriv } from 'node:crypto'
import {
  chmodSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

const [dir, mebibytes, seed] = process.argv.slice(2)
mkdirSync(dir)
process.chdir(dir)

const key = Buffer.alloc(32)
key.writeUInt32LE(Number(seed))
const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16))
/** Half of each block is random: the other half can be compressed. */
const content = (bytes) => {
  const block = Buffer.alloc(bytes)
  cipher.update(block.subarray(0, bytes >> 1)).copy(block)
  return block
}

const MIB = 1024 * 1024
writeFileSync('large', '')
for (let written = 0; written < mebibytes / 2; written++) writeFileSync('large', content(MIB), { flag: 'a' })
mkdirSync('files')
const fileCount = 500
for (let number = 0; number < fileCount; number++)
  writeFileSync(join('files', String(number)), content(Math.floor(((mebibytes / 2) * MIB) / fileCount)))

mkdirSync('names')
const names = [
  '-rf',
  ' ',
  'new\nline',
  '*',
  '"\'\\',
  'é€😀',
  '.hidden',
  '..x',
  'x'.repeat(255),
  'tab\t',
  '%s',
]
for (const name of names) writeFileSync(join('names', name), name)
writeFileSync(Buffer.concat([Buffer.from('names/'), Buffer.from([0xff, 0xfe, 0x80])]), 'not UTF-8')
let deep = 'deep'
for (let depth = 0; depth < 30; depth++) deep = join(deep, 'd'.repeat(100))
mkdirSync(deep, { recursive: true })
writeFileSync(join(deep, 'file'), 'at the bottom')

mkdirSync('modes')
for (const mode of [0o000, 0o400, 0o777, 0o4755, 0o2755, 0o1644, 0o6711]) {
  writeFileSync(`modes/${mode.toString(8)}`, 'mode')
  chmodSync(`modes/${mode.toString(8)}`, mode)
}
for (const mode of [0o000, 0o500, 0o1777, 0o2775]) {
  const path = `modes/dir-${mode.toString(8)}`
  mkdirSync(path)
  writeFileSync(`${path}/inside`, 'inside')
  chmodSync(path, mode)
}
writeFileSync('old', 'old')
utimesSync('old', 1, 1.5)

mkdirSync('links')
for (const [name, target] of [
  ['dangling', 'nowhere'],
  ['absolute', '/etc/passwd'],
  ['outside', '../../../../../..'],
  ['self', 'self'],
  ['dir', '../files'],
])
  symlinkSync(target, join('links', name))
for (const name of ['one', 'two', 'three']) linkSync('large', join('links', `hard-${name}`))
linkSync('modes/0', 'links/hard-unreadable')

const sparse = openSync('sparse', 'w')
truncateSync('sparse', 3 * 1024 * MIB)
writeSync(sparse, 'in the middle', 1024 * MIB)
execFileSync('mkfifo', ['fifo'])
mkdirSync('empty')

// Node cannot set extended attributes. tar sets those in a pax header.
const record = (text) => {
  let length = text.length + 3
  while (`${length} ${text}\n`.length !== length) length = `${length} ${text}\n`.length
  return `${length} ${text}\n`
}
const header = (name, size, type) => {
  const block = Buffer.alloc(512)
  const fields = [
    [name, 0],
    ['0000644\0', 100],
    ['0001750\0', 108],
    ['0001750\0', 116],
    [`${size.toString(8).padStart(11, '0')}\0`, 124],
    ['00000000000\0', 136],
    ['        ', 148],
    [type, 156],
    ['ustar\x0000', 257],
  ]
  for (const [text, offset] of fields) block.write(text, offset, 'latin1')
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}
const padded = (text) => Buffer.concat([Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)])
const attributes = record('SCHILY.xattr.user.boxwood=an attribute') + record('SCHILY.xattr.user.empty=')
const archive = Buffer.concat([
  header('pax', attributes.length, 'x'),
  padded(attributes),
  header('attributes', 4, '0'),
  padded('xatt'),
  Buffer.alloc(1024),
])
execFileSync('tar', ['-x', '--xattrs', '--xattrs-include=*', '--no-same-owner', '-f', '-'], {
  input: archive,
})
