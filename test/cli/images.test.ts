// box images and regions, and --image of new boxes and environments.
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { formatLayer, type Layer } from '../../cli/images/pull-progress.ts'
import { createProviders } from '../../coordinator/providers/regions.ts'
import type { PullProgress } from '../../shared/api/images.ts'
import { REGIONS } from '../../shared/tiers.ts'
import { FakeImages, withImages } from '../support/fake-images.ts'
import { FakeInfrastructure } from '../support/fake-infrastructure.ts'
import { waitUntil } from '../support/wait-until.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const infra = new FakeInfrastructure()
const images = new FakeImages()
const otherImages = new FakeImages()
const providers = createProviders(
  new Map(
    REGIONS.map((region) => {
      if (region === 'us-east-1') return [region, withImages(new FakeInfrastructure(infra).provider, images)]
      if (region === 'us-east-2')
        return [region, withImages(new FakeInfrastructure(infra).provider, otherImages)]
      return [region, infra.provider]
    }),
  ),
)
const coordinator = await startCliCoordinator(t, [], { infra, providers })
const box = (...args: string[]) => runBox(coordinator, args)

const DIGEST = `sha256:${'ab12cd34ef56'.padEnd(64, '0')}`
const addImage = (reference: string) =>
  images.downloaded.set(`docker.io/library/${reference}`, {
    reference,
    digest: DIGEST,
    sizeBytes: 117_000_000,
    createdAt: Date.UTC(2030, 0, 1),
  })
addImage('debian:12')

t.test('lists images with their size and a short digest', async (t) => {
  otherImages.beforeCall = () => {
    throw new Error('Podman does not answer.')
  }
  const { stdout, stderr } = await box('images')
  t.match(stdout, /^IMAGE +REGION +SIZE +DIGEST +BUILT\ndebian:12 +us-east-1 +112 MiB +ab12cd34ef56 +/)
  t.match(stderr, /us-east-2 cannot be listed: Podman does not answer\./)
  otherImages.beforeCall = () => undefined
  t.match((await box('image', 'ls', '-o', 'wide')).stdout, DIGEST)
  t.match(JSON.parse((await box('images', '--json')).stdout), {
    images: [{ reference: 'debian:12', region: 'us-east-1', digest: DIGEST }],
    unavailable: [],
  })
  t.same(await box('images', '--region', 'us-east-2'), {
    code: 0,
    stdout: '',
    stderr:
      'No images. `box images pull IMAGE` downloads one, and `box create --image IMAGE` does so too, in a region with images: `box regions`.\n',
  })
})

const layer = (id: string, status: Layer['status'], currentBytes = 0): Layer => ({
  id,
  status,
  currentBytes,
  totalBytes: 1_000_000,
})

t.test('pull prints a line for each change of a layer, and the result', async (t) => {
  const progress: [PullProgress, line: string][] = [
    [
      { layers: [layer('aaaa1111', 'waiting'), layer('bbbb2222', 'downloading', 1)] },
      'bbbb2222: downloading',
    ],
    [
      { layers: [layer('aaaa1111', 'downloading', 5), layer('bbbb2222', 'downloading', 500_000)] },
      'aaaa1111: downloading',
    ],
    [
      { layers: [layer('aaaa1111', 'complete', 1_000_000), layer('bbbb2222', 'unpacking')] },
      'bbbb2222: unpacking',
    ],
  ]
  images.registry.add('docker.io/library/python:3.13')
  let printed = ''
  images.download = async (_, onProgress) => {
    await setImmediate()
    for (const [each, line] of progress) {
      onProgress(each)
      // Progress replaces earlier progress that the client has not received.
      await waitUntil(line, () => printed.includes(line))
    }
  }
  const { code, stdout, stderr } = await runBox(coordinator, ['images', 'pull', 'python:3.13'], {
    onSpawn: (child) => child.stderr?.on('data', (chunk) => (printed += chunk)),
  })
  t.same([code, stdout], [0, ''])
  t.match(
    stderr.split('\n').map((line) => line.replace(/[\d.]+ ([KM]i)?B/, 'SIZE')),
    [
      'bbbb2222: downloading, SIZE',
      'aaaa1111: downloading, SIZE',
      'aaaa1111: complete, SIZE',
      'bbbb2222: unpacking, SIZE',
      /python:3\.13: SIZE, digest \w+, in us-east-1$/,
      '',
    ],
  )
  const result = await box('images', 'pull', 'python:3.13', '--json')
  t.match(JSON.parse(result.stdout), { reference: 'python:3.13', digest: /^sha256:/ })
  t.equal(result.stderr, '')
})

t.test('pull shows bars on a terminal', async (t) => {
  const released = Promise.withResolvers<void>()
  images.download = async (_, onProgress) => {
    await setImmediate()
    onProgress({ layers: [layer('aaaa1111', 'downloading', 500_000)] })
    await released.promise
  }
  images.registry.add('docker.io/library/debian:13')
  const pty = runBoxInPty(t, coordinator, 'box images pull debian:13')
  await pty.waitFor(/aaaa1111 +downloading +█+░+ +488 KiB of 977 KiB/)
  released.resolve()
  await pty.waitFor(/debian:13: .* in us-east-1/)
  t.match(await pty.waitForExit(), { exitCode: 0 })
})

t.test('the bar of a layer needs its size', async (t) => {
  t.equal(
    formatLayer({ id: 'a', status: 'waiting', currentBytes: 0, totalBytes: null }),
    'a             waiting',
  )
  t.equal(
    formatLayer({ id: 'a', status: 'downloading', currentBytes: 2048, totalBytes: null }),
    'a             downloading  2.00 KiB',
  )
})

t.test('pull reports an error of the registry, a lost connection, and a region without images', async (t) => {
  t.match(await box('images', 'pull', 'no:such'), {
    code: 5,
    stderr: /^box: There is no image \S+no:such\. \(image_not_found\)\n$/,
  })
  coordinator.failNext('POST /api/v1/images', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': lost\n\n', () => response.destroy())
  })
  t.match(await box('images', 'pull', 'debian:12'), {
    stderr: /connection to the coordinator was lost\. Run the command again/,
  })
  t.match(await box('images', 'pull', 'debian:12', '--region', 'us-west-2'), {
    code: 1,
    stderr: /`box regions` lists what each region can do/,
  })
})

t.test('rm removes images, and says which boxes use one', async (t) => {
  for (const reference of ['debian:12', 'used:1', 'old:1']) addImage(reference)
  await coordinator.addBox('plum', { image: 'used:1', region: 'us-east-1' })
  t.match(await box('images', 'rm', 'old:1', 'used:1'), {
    code: 1,
    stderr: /^old:1: removed\nbox: .*`box ls --filter image=used:1`/,
  })
  t.match(await box('images', 'rm', 'none:1', '--region', 'us-east-1'), {
    code: 5,
    stderr: /`box images` lists/,
  })
  t.notOk(images.downloaded.has('docker.io/library/old:1'))
  t.ok(images.downloaded.has('docker.io/library/used:1'))
})

t.test('box regions shows what each region can do', async (t) => {
  const { stdout } = await box('regions')
  t.match(stdout, /^us-west-2 +fake +no +unknown +restart +yes +yes +none$/m)
  t.match(stdout, /^us-east-1 +docker +yes +yes +restart +yes +- +any, default debian:12$/m)
  coordinator.changeNext('GET /api/v1/regions', ({ regions }) => ({
    regions: regions.map((region: object) => ({ ...region, freeze: null, resize: 'live' })),
  }))
  t.match((await box('regions')).stdout, /^us-east-1 +docker +yes +unknown +live +yes /m)
  t.equal((await box('regions', '-q', '--filter', 'images=yes')).stdout, 'us-east-1\nus-east-2\n')
})

t.test('a new box takes an image', async (t) => {
  t.match(await box('create', 'fig', '-q', '--image', 'debian:12', '--region', 'us-east-1'), { code: 0 })
  t.match(await box('create', '--image', 'debian:12', '--from', 'web'), {
    code: 2,
    stderr: /--image cannot be combined with --from/,
  })
  t.match((await box('show', 'fig')).stdout, /^image +debian:12, sha256:ab12cd34ef56/m)
  t.match((await box('ls')).stdout, /^fig +running +lite +\w+ +debian:12 +/m)
  t.equal((await box('ls', '-q', '--filter', 'image=debian')).stdout, 'fig\n')
})

t.test('an environment has an image', async (t) => {
  t.match(await box('environments', 'create', 'py', '--image', 'python:3.13'), { code: 0 })
  t.match((await box('environments', 'show', 'py')).stdout, /^image +python:3\.13$/m)
  t.match(await box('environments', 'set', 'py', '--image', ''), { code: 0, stderr: /py: version 2/ })
  t.notMatch((await box('environments', 'show', 'py')).stdout, /python/)
})

t.test('completes images, and the names of the commands', async (t) => {
  const complete = async (...words: string[]) => (await box('__complete', '--', ...words)).stdout
  t.match(await complete('create', '--image', ''), /^debian:12\tus-east-1$/m)
  t.match(await complete('images', 'rm', 'deb'), /^debian:12\tus-east-1$/m)
  t.equal(await complete('images', 'pull', ''), '')
  t.match(await complete('images', ''), /^pull\t/m)
})
