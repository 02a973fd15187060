// What Podman has in its storage when it was killed while it created the image of an archive.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { getContainerName } from '../../../../../coordinator/providers/docker/names.ts'
import { findPodmanProblem, startPodman } from '../../../../support/engines/podman.ts'
import { openEngineTest } from './support.ts'

const key = (archiveId: string) => ({ workspaceId: 'ws1', archiveId })

t.test('killed commits', { skip: findPodmanProblem('root') ?? false }, async (t) => {
  const podman = await startPodman('root')
  if ('skip' in podman) return void t.comment(podman.skip)
  t.teardown(() => podman.close())
  const test = await openEngineTest('podman', podman)
  t.teardown(() => test.close())
  const { archives, archiveImages, store } = await test.openArchives()
  t.teardown(() => store.close())
  await test.images.ensure('busybox')
  const boxId = await test.startMachine(test.normalize('busybox'))
  const listIds = () => podman.command(['images', '--all', '--quiet', '--no-trunc'])

  /** The name is the last part of an image that Podman writes. */
  const interruptCommit = async (archiveId: string): Promise<string> => {
    await archiveImages.commit(boxId, archiveId)
    const image = await archiveImages.find(archiveId)
    podman.command(['untag', archiveImages.getReference(archiveId)])
    return image?.id.replace('sha256:', '') ?? ''
  }

  await t.test('an image without a manifest', async (t) => {
    await archives.capture(boxId, key('one'), 'all')
    const ids = [await interruptCommit('damaged'), await interruptCommit('damaged')]
    await podman.kill()
    for (const id of ids) rmSync(join(podman.dir, 'podman/storage/overlay-images', id, 'manifest'))
    await podman.start()
    await archives.capture(boxId, key('two'), 'all')
    for (const archiveId of ['one', 'two'])
      await test.destroyMachine(await test.restoreMachine(archives, key(archiveId)))
    for (const id of ids) t.notMatch(listIds(), id)
    t.match(podman.command(['ps']), getContainerName(boxId))
  })

  await t.test('an image without a name, with the layers of another one', async (t) => {
    const id = await interruptCommit('unnamed')
    await archives.capture(boxId, key('three'), 'all')
    t.match(listIds(), id)
    await archives.removeUnusedImages()
    t.notMatch(listIds(), id)
    t.ok(await archiveImages.find('three'))
  })

  await t.test('an image without a name, after a capture that has failed', async (t) => {
    const id = await interruptCommit('unnamed')
    await podman.kill()
    await t.rejects(archives.capture(boxId, key('four'), 'all'), { name: 'EngineUnavailableError' })
    await podman.start()
    await archives.capture(boxId, key('four'), 'all')
    t.match(listIds(), id)
    await archives.remove(key('four'))
    t.notMatch(listIds(), id)
  })
})
