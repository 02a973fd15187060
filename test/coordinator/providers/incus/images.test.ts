// Images of a simplestreams server, and what happens when it has none or cannot be reached.

import { join } from 'node:path'
import t from 'tap'
import { normalizeReference } from '../../../../coordinator/providers/incus/images.ts'
import { ImageError } from '../../../../coordinator/providers/provider.ts'
import type { PullProgress } from '../../../../shared/api/images.ts'
import { buildBusyboxTree } from '../../../support/engines/busybox-tree.ts'
import { startImageServer } from '../../../support/engines/image-server.ts'
import { findIncusProblem } from '../../../support/engines/incus.ts'
import { createSpec, startServer } from './support.ts'

t.test('names of an image', async (t) => {
  for (const reference of ['debian:12', 'debian/12', 'images:debian/12', 'images:debian:12'])
    t.equal(normalizeReference(reference), 'debian/12', reference)
  t.equal(normalizeReference('busybox'), 'busybox')
})

const problem = findIncusProblem()

t.test('images', problem === undefined ? {} : { skip: problem }, async (t) => {
  const server = await startServer(t, { image: null })
  const rootfs = join(server.dir, 'rootfs')
  buildBusyboxTree(rootfs)
  const imageServer = await startImageServer(server, { rootfs, name: 'tiny', release: '1' })
  t.teardown(() => imageServer.kill())
  const provider = server.open(server.openHost({ imageServer: imageServer.url, defaultImage: 'tiny:1' }))
  const { images } = provider
  if (images === undefined) throw new Error('The provider has no images.')

  t.equal(images.findProblem('debian:12'), null)
  t.match(images.findProblem('debian@sha256:00'), /must be the name of an image/)
  t.same(await images.list(), [])
  const missing = await images.pull('tiny:2').catch((error: unknown) => error)
  t.type(missing, ImageError)
  t.match(missing, { code: 'image_not_found', message: /^There is no image tiny:2/ })

  const progress: PullProgress[] = []
  const pulls = ['tiny:1', 'images:tiny/1'].map((name) => images.pull(name, (state) => progress.push(state)))
  const [pulled, same] = await Promise.all(pulls)
  t.match(pulled, { reference: 'tiny/1', digest: /^sha256:[0-9a-f]{64}$/, sizeBytes: Number })
  t.same(same, pulled, 'concurrent pulls share a download')
  t.match(progress.at(-1), { layers: [{ status: 'complete', totalBytes: pulled?.sizeBytes }] })
  t.same(await images.list(), [pulled])
  const spec = createSpec({ image: null })
  t.match(await provider.create(spec), { imageDigest: pulled?.digest }, 'the default image')

  t.equal(await images.remove('nothing:1'), false)
  t.equal(await images.remove('tiny:1'), true)
  t.same(await images.list(), [])
  t.match(
    await provider.create(createSpec({ image: 'tiny:1' })),
    { imageDigest: pulled?.digest },
    'it is pulled',
  )
  await images.remove('tiny:1')

  imageServer.kill()
  const failure = await images.pull('tiny:1').catch((error: unknown) => error)
  t.notOk(failure instanceof ImageError, 'a server that cannot be reached is no permanent failure')
  t.match((failure as Error).message, /connection refused/)
})
