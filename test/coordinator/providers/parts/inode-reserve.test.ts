// Inodes that are reserved for the boxes that have not filled the disk.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createInodeReserve } from '../../../../coordinator/providers/parts/inode-reserve.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

t.test('reserves a small part of the inodes, and releases all of them', async (t) => {
  const dir = join(createTempDir(t, 'inodes'), 'reserve')
  const reserve = createInodeReserve(dir)
  await reserve.restore(6400)
  t.equal(readdirSync(dir).length, 100)
  await reserve.release()
  t.notOk(existsSync(dir))
  await reserve.restore(1_000_000)
  t.equal(readdirSync(dir).length, 2000)
})

t.test('completes the reserve of a coordinator that was killed', async (t) => {
  const dir = join(createTempDir(t, 'inodes'), 'reserve')
  await createInodeReserve(dir).restore(6400)
  rmSync(join(dir, '50'))
  await createInodeReserve(dir).restore(6400)
  t.equal(readdirSync(dir).length, 100)
})

t.test('tries again when the files cannot be created', async (t) => {
  const dir = join(createTempDir(t, 'inodes'), 'reserve')
  writeFileSync(dir, '')
  const reserve = createInodeReserve(dir)
  await reserve.restore(6400)
  rmSync(dir)
  await reserve.restore(6400)
  t.equal(readdirSync(dir).length, 100)
})
