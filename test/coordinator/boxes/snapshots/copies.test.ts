// A provider that copies machines stores no archive for a fork, unless the snapshot of the fork is kept.
import t from 'tap'
import { serveAllRegions } from '../../../../coordinator/providers/regions.ts'
import { restartCopies } from '../../../../coordinator/server/backup/store.ts'
import { createHangingFault } from '../../../support/fake-infrastructure.ts'
import { createRestartableSnapshots } from '../../../support/restartable-snapshots.ts'
import { sqliteForTest } from '../../../support/sqlite.ts'

t.test('only the snapshot of a fork that is not kept is a copy', async (t) => {
  const calls: string[] = []
  const newBoxIds: (string | null)[] = []
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), {
    createProviders: ({ provider }) =>
      serveAllRegions({
        ...provider,
        capture: (boxId, archive, ...rest) => {
          calls.push('capture')
          return provider.capture(boxId, archive, ...rest)
        },
        copyMachine: (boxId, archive, newBoxId, signal) => {
          calls.push('copyMachine')
          newBoxIds.push(newBoxId)
          return provider.capture(boxId, archive, 'files', signal)
        },
      }),
  })
  const { start, createRunningBox, getSnapshots, owner, waitForState, waitForStatus, waitForJobs, infra } =
    harness
  await start()
  const boxId = await createRunningBox()
  const fork = await getSnapshots().service.fork(owner, boxId, {})
  await waitForState(fork.box.id, 'running')
  t.same(calls.splice(0), ['copyMachine'])
  t.same(newBoxIds, [fork.box.id])
  t.equal(infra.machines.get(fork.box.id)?.files, 'content')
  const kept = await getSnapshots().service.fork(owner, boxId, { keepSnapshot: true })
  await waitForState(kept.box.id, 'running')
  const { id } = await getSnapshots().service.create(owner, { boxId, name: 'a' })
  await waitForStatus(id, 'available')
  t.same(calls, ['capture', 'capture'])
  await waitForJobs()
})

t.test('a fork that a backup interrupts copies the files again', async (t) => {
  const db = await sqliteForTest(t)
  const harness = await createRestartableSnapshots(t, db, {
    createProviders: ({ provider }) => serveAllRegions({ ...provider, name: 'local' }),
  })
  const { start, createRunningBox, getSnapshots, owner, waitForState, waitForStatus, waitForJobs, infra } =
    harness
  await start()
  const boxId = await createRunningBox()
  const create = createHangingFault()
  infra.before.create = create.fault
  const { box, snapshot } = await getSnapshots().service.fork(owner, boxId, {})
  await waitForStatus(snapshot.id, 'available')
  await create.triggered
  // The copy of the database has the rows, and the backup does not have the copy of the machine.
  infra.archives.clear()
  delete infra.before.create
  for (const table of ['boxes', 'snapshots'] as const)
    await db.updateTable(table).set({ provider: 'local' }).execute()
  await restartCopies(db, 0)
  t.match(await db.selectFrom('snapshots').selectAll().execute(), [
    { status: 'creating', content_bytes: null, provider: 'local' },
  ])
  await start()
  await waitForState(box.id, 'running')
  t.equal(infra.machines.get(box.id)?.files, 'content')
  await waitForJobs()
  t.equal(infra.archives.size, 0)
})

t.test('boxes are created from a snapshot whose files are copied, before it is available', async (t) => {
  const db = await sqliteForTest(t)
  const stored = Promise.withResolvers<void>()
  let copies = 0
  const harness = await createRestartableSnapshots(t, db, {
    createProviders: ({ provider }) =>
      serveAllRegions({
        ...provider,
        capture: async (boxId, archive, contents, signal, onCopied) => {
          const info = await provider.capture(boxId, archive, contents, signal)
          copies++
          await onCopied?.(info)
          if (copies === 1) throw new Error('the disk is full')
          await stored.promise
          return info
        },
      }),
  })
  const { start, createRunningBox, getSnapshots, owner, waitForState, waitForStatus, waitForJobs, infra } =
    harness
  await start()
  const boxId = await createRunningBox()
  const { service } = getSnapshots()
  const { id } = await service.create(owner, { boxId, name: 'a' })
  const restored = await service.restore(owner, id, { name: 'plum' })
  const kept = await service.fork(owner, boxId, { keepSnapshot: true, name: 'kiwi' })
  await waitForState(restored.id, 'running')
  await waitForState(kept.box.id, 'running')
  t.equal(infra.machines.get(restored.id)?.files, 'content')
  t.same(
    (await service.list(owner)).map(({ status }) => status),
    ['creating', 'creating'],
  )
  // A backup has no copies of machines.
  await restartCopies(db, 0)
  t.match(await db.selectFrom('snapshots').select('content_bytes').execute(), [
    { content_bytes: null },
    { content_bytes: null },
  ])
  stored.resolve()
  await waitForStatus(id, 'available')
  await waitForStatus(kept.snapshot.id, 'available')
  await waitForJobs()
})

t.test('a fork of a box in deep sleep is a copy, unless its snapshot is kept', async (t) => {
  const calls: string[] = []
  const harness = await createRestartableSnapshots(t, await sqliteForTest(t), {
    createProviders: ({ provider }) =>
      serveAllRegions({
        ...provider,
        copyArchive: (source, archive, _newBoxId, signal) => {
          calls.push('copyArchive')
          return provider.copyFiles(source, archive, signal)
        },
      }),
  })
  const { start, createRunningBox, getSnapshots, owner, waitForState, waitForJobs, infra, db } = harness
  await start()
  const boxId = await createRunningBox()
  const archive = { workspaceId: owner.workspaceId, archiveId: 'arc_1' }
  await infra.provider.capture(boxId, archive, 'all')
  infra.machines.delete(boxId)
  await db.updateTable('boxes').set({ observed_state: 'deep_sleep', archive_id: 'arc_1' }).execute()
  const { service } = getSnapshots()
  const fork = await service.fork(owner, boxId, {})
  await waitForState(fork.box.id, 'running')
  t.equal(infra.machines.get(fork.box.id)?.files, 'content')
  t.same(calls.splice(0), ['copyArchive'])
  const kept = await service.fork(owner, boxId, { keepSnapshot: true })
  await waitForState(kept.box.id, 'running')
  t.same(calls, [])
  await waitForJobs()
})
