// The data directory: modes, and its host, an id that is created once and never replaced.
import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openDataDirectory } from '../../../coordinator/base/data-directory.ts'
import { isDataFile } from '../../../coordinator/server/backup/format.ts'
import { isId } from '../../../shared/ids.ts'
import { createTempDir } from '../../support/temp-dir.ts'

t.test('the host is created once, and is part of a backup', async (t) => {
  const dir = createTempDir(t, 'data')
  const file = join(dir, 'host')
  const opened = await Promise.all(Array.from({ length: 5 }, () => openDataDirectory(dir)))
  const hosts = new Set(opened.map(({ host }) => host))
  t.equal(hosts.size, 1, 'concurrent processes find one host')
  const [host = ''] = hosts
  t.ok(isId('host', host))
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal((await openDataDirectory(dir)).host, host)
  t.equal(isDataFile('host'), true)
  const moved = createTempDir(t, 'moved')
  copyFileSync(file, join(moved, 'host'))
  t.equal((await openDataDirectory(moved)).host, host)
})

t.test('the directory is private, and its new parents can be entered by users of boxes', async (t) => {
  const parent = createTempDir(t, 'parent')
  const before = process.umask(0o022)
  t.teardown(() => process.umask(before))
  await openDataDirectory(join(parent, 'boxwood', 'data'))
  t.equal(statSync(join(parent, 'boxwood')).mode & 0o777, 0o755)
  t.equal(statSync(join(parent, 'boxwood', 'data')).mode & 0o766, 0o700)
})

t.test('a damaged host is an error, not a new host', async (t) => {
  const dir = createTempDir(t, 'data')
  const { host } = await openDataDirectory(dir)
  const file = join(dir, 'host')
  writeFileSync(file, '')
  await t.rejects(openDataDirectory(dir), { message: /host is damaged\. Restore it from a backup/ })
  // An operator may write the id by hand.
  writeFileSync(file, `${host}\n`)
  t.equal((await openDataDirectory(dir)).host, host)
  t.equal(readFileSync(file, 'utf8'), `${host}\n`)
  rmSync(file)
  t.not((await openDataDirectory(dir)).host, host)
})
