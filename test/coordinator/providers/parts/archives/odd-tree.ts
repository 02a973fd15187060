// A tree with entries of every kind, with extended attributes where the programs for them are installed.
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { BoxFiles } from '../../../../../coordinator/providers/parts/archives/tar.ts'
import { findProgram } from '../../../../support/requires.ts'
import { changeOwner } from './support.ts'

/** Entries of every kind that a box can create, except sockets. */
export function createOddTree(files: BoxFiles & { home: string }): void {
  const { home } = files
  const inHome = (name: string) => join(home, name)
  const withBytes = (name: string) => Buffer.from(`${home}/${name}`, 'latin1')
  const write = (path: string | Buffer, text = '') => writeFileSync(path, text)
  write(inHome('file'), 'text')
  for (const name of ['.hidden', '*', '--checkpoint-action=exec=false', 'ü'.repeat(127)]) write(inHome(name))
  write(withBytes('invalid \xff\xfe utf-8'), 'bytes')
  write(withBytes('new\nline \t tab \\ backslash'))
  mkdirSync(inHome('empty'))
  mkdirSync(inHome(`${'directory/'.repeat(100)}${'n'.repeat(255)}`), { recursive: true })
  mkdirSync(inHome('other'))
  for (const name of ['hard-link', 'other/hard-link']) linkSync(inHome('file'), inHome(name))
  for (const [name, target] of [
    ['symlink', 'file'],
    ['absolute-symlink', '/etc/passwd'],
    ['parent-symlink', '../../..'],
    ['dangling-symlink', 'missing\n'],
    // XFS allows 1,023 bytes.
    ['long-symlink', 'x'.repeat(1000)],
  ] as const)
    symlinkSync(target, inHome(name))
  linkSync(inHome('absolute-symlink'), inHome('other/hard-link-of-symlink'))
  execFileSync('mkfifo', [inHome('fifo')])
  const sparse = openSync(inHome('sparse'), 'w')
  writeSync(sparse, 'start')
  writeSync(sparse, 'middle', 5 * 1024 * 1024)
  ftruncateSync(sparse, 64 * 1024 * 1024)
  closeSync(sparse)
  if (findProgram('setfattr') !== undefined)
    for (const name of ['user.plain', 'user.odd=name'])
      spawnSync('setfattr', ['-n', name, '-v', '0x00ff0a', inHome('file'), inHome('empty')])
  if (findProgram('setfacl') !== undefined)
    spawnSync('setfacl', ['-m', 'g::rx,m::rx,d:u::rwx,d:g::r,d:o::-', inHome('other')])

  const modes = { 'read-only': 0o444, 'no-permissions': 0, executable: 0o755, 'set-ids': 0o6755 }
  for (const name of Object.keys(modes)) write(inHome(name), name)
  const directoryModes = { locked: 0, 'locked/inner': 0o500, sticky: 0o1777, 'set-gid': 0o2775 }
  for (const name of Object.keys(directoryModes)) mkdirSync(inHome(name))
  changeOwner(files)
  // chown removes special bits.
  for (const [name, mode] of Object.entries({ ...modes, ...directoryModes }).reverse())
    chmodSync(inHome(name), mode)
  execFileSync('touch', ['-h', '-d', '@-5.000000001', inHome('absolute-symlink')])
  execFileSync('touch', ['-d', '@4102444800', inHome('fifo'), inHome('sticky')])
  execFileSync('touch', ['-d', '@1234567890.123456789', inHome('file'), inHome('other')])
}
