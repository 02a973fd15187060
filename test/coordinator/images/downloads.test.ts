// The limits of downloads of images: the free space of the disk, downloads at a time, and the images of the coordinator in all.
import t, { type Test } from 'tap'
import { createImageDownloads } from '../../../coordinator/images/downloads.ts'
import type { DiskSpace, SharedDisk } from '../../../coordinator/providers/provider.ts'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { FakeImages, withImages } from '../../support/fake-images.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { silentLog } from '../../support/tunnel.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createTestClock } from '../../support/workspace.ts'

const REGION = 'us-east-1'
const DAY_MS = 24 * 60 * 60_000
const LOW = { code: 'image_pull_failed', message: /less than 10 % free/ }

async function setUp(t: Test, limits = { count: 100, gib: 0 }) {
  const infra = new FakeInfrastructure()
  const images = new FakeImages()
  const space: { bytes: DiskSpace; inodes: DiskSpace | null } = {
    bytes: { free: 50, total: 100 },
    inodes: null,
  }
  const sharedDisk: SharedDisk = {
    fileSystem: 'test',
    measure: async () => ({ bytes: 0, inodes: 0 }),
    readSpace: async () => ({ ...space }),
  }
  const provider = { ...withImages(infra.provider, images), sharedDisk }
  const providers = createProviders(new Map([[REGION, provider]] as const))
  const coordinator = await startTestCoordinator(t, { infra, providers })
  const { db } = coordinator.instance.context
  // The first box has the default image.
  const { json } = await coordinator.api('GET', '/boxes')
  await coordinator.waitForState(json.boxes[0].id, 'running')
  await db.deleteFrom('image_downloads').execute()
  images.downloaded.clear()
  const clock = createTestClock(Date.now())
  for (const name of ['a', 'b', 'c', 'd']) images.registry.add(images.normalize(name))
  const downloads = createImageDownloads({ db, clock, log: silentLog, providers, limits })
  const { signal } = new AbortController()
  const pull = (image: string, workspaceId = 'ws_1') =>
    downloads.pull({ workspaceId, region: REGION, image }, signal)
  return {
    ...{ ...coordinator, db, clock, images, space, downloads, signal, pull },
    listDownloaded: () => [...images.downloaded.keys()].map((name) => name.replace(/^.*\/|:latest$/g, '')),
    /** Downloads which end when their function is called. */
    holdDownloads() {
      const held = new Map<string, () => void>()
      images.download = (reference, onProgress, aborted) =>
        new Promise((resolve, reject) => {
          onProgress({ layers: [] })
          held.set(reference.replace(/^.*\/|:latest$/g, ''), resolve)
          aborted.addEventListener('abort', () => reject(aborted.reason))
        })
      return held
    },
  }
}

t.test('no image is downloaded when the disk has less than 10 % free', async (t) => {
  const { downloads, images, space, signal, pull, api, waitForState } = await setUp(t)
  await pull('a')
  space.bytes = { free: 9, total: 100 }
  await t.rejects(pull('b'), LOW)
  await t.rejects(downloads.ensure({ region: REGION, image: 'b' }, signal), LOW)
  await downloads.ensure({ region: REGION, image: 'a' }, signal)
  t.match(await api('POST', '/images', { image: 'b' }), { status: 502, json: { error: 'image_pull_failed' } })
  space.bytes = { free: 50, total: 100 }
  space.inodes = { free: 9, total: 100 }
  await t.rejects(pull('b'), LOW, 'inodes too')
  t.same([...images.downloaded.keys()], ['docker.io/library/a:latest'])

  const { json } = await api('POST', '/boxes', { name: 'fig', image: 'b' })
  await waitUntil('the box waits', async () => {
    const { json: detail } = await api('GET', `/boxes/${json.box.id}`)
    return /less than 10 % free/.test(detail.job?.lastError ?? '')
  })
  space.inodes = null
  await waitForState(json.box.id, 'running')
})

t.test('a download ends when the disk becomes low', async (t) => {
  const { images, space, clock, pull } = await setUp(t)
  const progress = Promise.withResolvers<() => void>()
  images.download = (_reference, onProgress, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      progress.resolve(() => onProgress({ layers: [] }))
    })
  const pulled = pull('a')
  pulled.catch(() => undefined)
  const report = await progress.promise
  report()
  space.bytes = { free: 9, total: 100 }
  clock.advance(10_000)
  report()
  await t.rejects(pulled, LOW)
  t.equal(images.downloaded.size, 0)
})

t.test('a workspace downloads one image at a time', async (t) => {
  const { holdDownloads, listDownloaded, downloads, signal, pull } = await setUp(t)
  const held = holdDownloads()
  const first = [pull('a'), pull('a:latest')]
  await waitUntil('the download runs', () => held.has('a'))
  await t.rejects(pull('b'), { code: 'rate_limited', headers: { 'retry-after': '10' } })
  const other = pull('b', 'ws_2')
  const ofBox = downloads.ensure({ region: REGION, image: 'c' }, signal)
  await waitUntil('others download', () => held.has('b') && held.has('c'))
  for (const finish of held.values()) finish()
  await Promise.all([...first, other, ofBox])
  t.same(listDownloaded().sort(), ['a', 'b', 'c'])
  const next = pull('d')
  await waitUntil('the next one runs', () => held.has('d'))
  held.get('d')?.()
  await next
})

t.test('images that nothing has used for a week are removed first', async (t) => {
  const { downloads, listDownloaded, clock, space, signal, pull, api, waitForState } = await setUp(t)
  for (const image of ['a', 'b', 'c', 'debian:12']) await pull(image)
  const { json } = await api('POST', '/boxes', { name: 'fig', image: 'b' })
  await waitForState(json.box.id, 'running')
  await api('POST', '/environments', { name: 'web', image: 'c' })
  clock.advance(6 * DAY_MS)
  space.bytes = { free: 9, total: 100 }
  await t.rejects(pull('d'), LOW)
  t.equal(listDownloaded().length, 4, 'none is unused for a week')
  clock.advance(DAY_MS)
  await t.rejects(pull('d'), LOW)
  t.same(listDownloaded(), ['b', 'c', 'debian:12'], 'a box, an environment and the default of the region')

  // The uses were recorded until now.
  await downloads.recordUses(signal)
  await api('DELETE', `/boxes/${json.box.id}`)
  await waitForState(json.box.id, 'terminated')
  await t.rejects(pull('d'), LOW)
  t.same(listDownloaded(), ['b', 'c', 'debian:12'])
  clock.advance(7 * DAY_MS)
  await t.rejects(pull('d'), LOW)
  t.same(listDownloaded(), ['c', 'debian:12'])
})

t.test('the operator limits the images', async (t) => {
  const { downloads, listDownloaded, clock, pull, db, images } = await setUp(t, { count: 2, gib: 1 })
  images.downloaded.set('other', { reference: 'other', digest: 'sha256:0', sizeBytes: 1, createdAt: 0 })
  await pull('a')
  await pull('b')
  const full = { code: 'image_pull_failed', message: /BOXWOOD_IMAGE_LIMIT/ }
  await t.rejects(pull('c'), full)
  await pull('b')
  await downloads.forget({ region: REGION, image: 'b' })
  await pull('c')
  clock.advance(8 * DAY_MS)
  await pull('d')
  t.same(listDownloaded().sort(), ['b', 'c', 'd', 'other'], 'the oldest of its own is removed')
  await db
    .updateTable('image_downloads')
    .set({ size_bytes: 2 ** 30, used_at: clock.now() })
    .execute()
  await downloads.forget({ region: REGION, image: 'd' })
  await t.rejects(pull('d'), full)
})

t.test('an image that the engine does not remove stays', async (t) => {
  const { listDownloaded, clock, space, images, pull } = await setUp(t)
  await pull('a')
  await pull('b')
  images.downloaded.set('docker.io/library/a:latest', {
    ...{ reference: 'a', digest: null, sizeBytes: 10, createdAt: 0 },
  })
  clock.advance(8 * DAY_MS)
  space.bytes = { free: 9, total: 100 }
  await t.rejects(pull('c'), LOW)
  t.same(listDownloaded(), ['a'])
})
