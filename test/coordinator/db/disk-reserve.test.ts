// A full disk: the reserved space is released, and writing to the database succeeds.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openDiskReserve } from '../../../coordinator/db/disk-reserve.ts'
import { openDatabase } from '../../../coordinator/db/open.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import { mountSmallDisk, SKIP_MOUNT } from '../../support/small-disk.ts'

const MiB = 1024 * 1024
const row = (id: string) => ({
  id,
  name: 'x'.repeat(50_000),
  zero_data_retention: 0 as const,
  created_at: 2 ** 41,
})

t.test('a write to a full disk uses the reserve, also in a transaction', async (t) => {
  const disk = mountSmallDisk(t, 16)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const reserveFile = join(disk.dir, 'disk-reserve')
  const releases: string[] = []
  const diskReserve = openDiskReserve(reserveFile, { bytes: MiB, onRelease: () => releases.push('released') })
  const db = await openDatabase({ kind: 'sqlite', file: join(disk.dir, 'boxwood.db'), diskReserve })
  t.teardown(() => db.destroy())
  t.ok(existsSync(reserveFile))

  disk.fill()
  const attempts: string[] = []
  const committed: string[] = []
  await transaction(db, async (trx, onCommit) => {
    attempts.push('attempt')
    onCommit(() => committed.push('committed'))
    for (let n = 0; n < 10; n++)
      await trx
        .insertInto('workspaces')
        .values(row(`a${n}`))
        .execute()
  })
  t.equal(attempts.length, 2, 'the transaction ran again')
  t.equal(committed.length, 1)
  t.same(releases, ['released'])
  t.notOk(existsSync(reserveFile))
  t.equal((await db.selectFrom('workspaces').select('id').execute()).length, 10)

  diskReserve.restore()
  t.notOk(existsSync(reserveFile), 'the reserve is not restored while the disk is full')
  disk.free()
  diskReserve.restore()
  t.ok(existsSync(reserveFile))

  disk.fill()
  await db.insertInto('workspaces').values(row('b')).execute()
  for (let n = 0; !diskReserve.isReleased; n++)
    await db
      .insertInto('workspaces')
      .values(row(`b${n}`))
      .execute()
  t.equal(releases.length, 2, 'a query outside of a transaction uses the reserve too')

  for (let n = 0; n < 40; n++)
    if (
      await db
        .insertInto('workspaces')
        .values(row(`c${n}`))
        .execute()
        .then(
          () => false,
          () => true,
        )
    )
      break
  await t.rejects(
    transaction(db, async (trx) => {
      for (let n = 0; n < 40; n++)
        await trx
          .insertInto('workspaces')
          .values(row(`d${n}`))
          .execute()
    }),
    { message: /database or disk is full/ },
    'without a reserve the error of the database is thrown',
  )
})

t.test('a start on a full disk releases the reserve of the previous run', async (t) => {
  const disk = mountSmallDisk(t, 16)
  if (disk === undefined) return t.pass(SKIP_MOUNT, { skip: SKIP_MOUNT })
  const file = join(disk.dir, 'disk-reserve')
  openDiskReserve(file, { bytes: MiB })
  disk.fill()
  t.equal(openDiskReserve(file, { bytes: MiB }).isReleased, true)
  t.notOk(existsSync(file))
})
