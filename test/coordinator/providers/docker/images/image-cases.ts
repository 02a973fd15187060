// Lists, downloads and removes images. Each engine runs these tests.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { EngineKind } from '../../../../../coordinator/providers/docker/engine.ts'
import { createEngineImages } from '../../../../../coordinator/providers/docker/images/images.ts'
import { normalizeReference } from '../../../../../coordinator/providers/docker/images/reference.ts'
import { EngineHttp } from '../../../../../coordinator/providers/engine-http/client.ts'
import { ImageError } from '../../../../../coordinator/providers/provider.ts'
import type { PullProgress } from '../../../../../shared/api/images.ts'
import type { ImageEngine } from '../../../../support/engines/engine.ts'
import { FAULTY_REGISTRY } from '../../../../support/engines/images.ts'
import { waitUntil } from '../../../../support/wait-until.ts'

export async function testImages(t: Test, kind: EngineKind, { socket, command, registry }: ImageEngine) {
  const http = new EngineHttp(kind, { kind: 'unix', path: socket })
  t.teardown(() => http.close())
  const log = { debug() {}, info() {}, warn() {} }
  const dir = t.testdir()
  const config = join(dir, 'config.json')
  const images = createEngineImages(
    { kind, http, deploymentId: '0123456789abcdef', log },
    { defaultImage: 'debian:12', env: { DOCKER_CONFIG: dir } },
  )
  await registry.startFaulty()
  const faulty = (name: string) => `${FAULTY_REGISTRY}/${name}`
  const rejects = async (t: Test, reference: string, code: ImageError['code'] | null) => {
    const error = await images.pull(reference).then(
      () => null,
      (error: unknown) => error,
    )
    t.ok(error instanceof Error, `${reference}: ${(error as Error | null)?.message}`)
    t.equal(error instanceof ImageError ? error.code : null, code, (error as Error).message)
  }

  await t.test('an image is downloaded with progress, listed and removed', async (t) => {
    t.strictSame(await images.list(), [])
    t.equal(await images.remove('busybox'), false)
    const progress: PullProgress[] = []
    const image = await images.pull('busybox', (state) => progress.push(state))
    t.match(image, { reference: 'busybox:latest', digest: /^sha256:[0-9a-f]{64}$/, sizeBytes: Number })
    t.ok(progress.length > 0)
    t.ok(
      progress.at(-1)?.layers.every(({ status }) => status === 'complete'),
      JSON.stringify(progress.at(-1)),
    )
    t.strictSame(await images.list(), [image])
    t.strictSame(await images.list(), [await images.pull('docker.io/library/busybox:latest')])
    const { digest } = await images.ensure('busybox')
    t.equal(digest, image.digest)
    // Podman gives the image a second name, which a removal of the first one leaves.
    if (kind === 'docker') t.equal((await images.pull(`busybox@${digest}`)).digest, digest)
    command(['create', '--name', 'user-of-image', 'busybox', 'sh'])
    await t.rejects(images.remove('busybox'), { code: 'image_in_use' })
    command(['rm', 'user-of-image'])
    command(['tag', 'busybox', 'localhost/boxwood-0123456789abcdef/archive:one'])
    t.notMatch(JSON.stringify(await images.list()), 'boxwood', 'images of archives are not listed')
    command(['rmi', 'localhost/boxwood-0123456789abcdef/archive:one'])
    t.equal(await images.remove('busybox'), true)
  })

  await t.test(
    'a box gets an image without volumes, whose files would not be in its snapshots',
    async (t) => {
      const { id, environment } = await images.ensure('busybox')
      command(['create', '--name', 'volumes', 'busybox', 'sh'])
      command(['commit', '--change', 'VOLUME /data', 'volumes', 'localhost/with-volumes'])
      command(['rm', 'volumes'])
      const original = await images.find('localhost/with-volumes:latest')
      t.match(original, { hasVolumes: true })
      // Podman adds variables, in any order.
      t.strictSame(
        environment.filter((variable) => !original?.environment.includes(variable)),
        [],
      )
      const pulls = [images.ensure('localhost/with-volumes'), images.ensure('localhost/with-volumes')]
      const [image, same] = await Promise.all(pulls)
      t.match(image, { hasVolumes: false })
      t.strictSame(image?.environment, original?.environment)
      t.notSame(image?.id, id)
      t.strictSame(await images.ensure('localhost/with-volumes'), image)
      t.strictSame(same, image)
      t.equal((await images.list()).length, 2)
      await t.rejects(images.remove('localhost/with-volumes'), {
        code: 'image_not_downloaded',
        message: `${kind} rmi localhost/with-volumes`,
      })
      // The name alone does not say that the image comes from a registry.
      command(['tag', 'localhost/with-volumes', 'docker.io/library/built'])
      if (kind === 'docker') await t.rejects(images.remove('built'), { code: 'image_not_downloaded' })
      await images.removeUnused()
      t.match(command(['images']), 'without-volumes', 'the original exists')
      command(['rmi', 'docker.io/library/built', 'localhost/with-volumes'])
      await images.removeUnused()
      t.notMatch(command(['images']), 'volumes')
      t.equal(await images.remove('busybox'), true)
    },
  )

  await t.test('an image is not found by its digest with the name of another one', async (t) => {
    const { digest, id } = await images.ensure('busybox')
    t.equal((await images.ensure(`busybox@${digest}`)).id, id)
    const other = `${FAULTY_REGISTRY}/missing@${digest}`
    t.equal(await images.find(normalizeReference(other)), null)
    t.equal(await images.remove(other), false)
    await t.rejects(images.ensure(other), /missing/)
    t.ok(await images.find(normalizeReference('busybox')))
    command(['rmi', '--force', 'busybox'])
  })

  await t.test('the credentials of the docker command are used', async (t) => {
    await rejects(t, faulty('private/busybox'), 'image_pull_failed')
    writeFileSync(config, '{')
    await t.rejects(images.pull('busybox'), /config.json is not JSON/)
    const auth = Buffer.from('user:secret').toString('base64')
    writeFileSync(config, JSON.stringify({ auths: { [FAULTY_REGISTRY]: { auth } } }))
    t.match(await images.pull(faulty('private/busybox')), { reference: faulty('private/busybox:latest') })
    t.equal(await images.remove(faulty('private/busybox')), true)
  })

  await t.test('failures that a retry cannot fix have a code', async (t) => {
    await rejects(t, faulty('library/none'), 'image_not_found')
    await rejects(t, faulty('library/busybox:no-such-tag'), 'image_not_found')
    await rejects(t, faulty('refused/busybox'), 'image_pull_failed')
  })

  await t.test('failures that a retry may fix have none', async (t) => {
    await rejects(t, faulty('broken/busybox'), null)
    await rejects(t, '127.0.0.1:5002/busybox', null)
    await rejects(t, faulty('cut/busybox'), null)
    t.notMatch(JSON.stringify(await images.list()), 'cut')
  })

  await t.test('concurrent downloads are one, which ends with the last request', async (t) => {
    const reference = faulty('stalled/busybox')
    const [first, second] = [new AbortController(), new AbortController()]
    let reported = 0
    const onProgress = () => {
      reported += 1
    }
    const pulls = [
      images.pull(reference, onProgress, first.signal),
      images.pull(reference, onProgress, second.signal),
    ]
    for (const pull of pulls) pull.catch(() => {})
    if (kind === 'docker') await waitUntil('both requests have the progress', () => reported >= 2)
    first.abort(new Error('first'))
    await t.rejects(pulls[0] as Promise<unknown>, /first/)
    second.abort(new Error('second'))
    await t.rejects(pulls[1] as Promise<unknown>, /second/)
    t.notMatch(JSON.stringify(await images.list()), 'stalled')
  })

  await t.test('a registry that was stopped is no permanent failure', async (t) => {
    await registry.kill()
    await rejects(t, faulty('library/busybox'), null)
    await registry.start()
    t.ok(await images.pull(faulty('library/busybox')))
  })
}
