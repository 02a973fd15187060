// box images and regions, and --image of new boxes and environments.
import t from 'tap'
import { formatLayer, type Layer } from '../../cli/images/pull-progress.ts'
import { runBoxInPty } from './box-in-pty.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeEnvironments } from './fake-environments.ts'
import { addFakeImages, DEBIAN } from './fake-images.ts'
import { runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
const state = addFakeImages(fake)
const environments = addFakeEnvironments(fake)
const box = (...args: string[]) => runBox(fake.url, args)

t.test('lists images with their size and a short digest', async (t) => {
  state.unavailable = [{ region: 'us-east-2', message: 'Podman does not answer.' }]
  const { stdout, stderr } = await box('images')
  t.match(stdout, /^IMAGE +REGION +SIZE +DIGEST +BUILT\ndebian:12 +us-east-1 +112 MiB +ab12cd34ef56 +/)
  t.match(stderr, /us-east-2 cannot be listed: Podman does not answer\./)
  state.unavailable = []
  t.match((await box('image', 'ls', '-o', 'wide')).stdout, `${DEBIAN.digest}`)
  t.match(JSON.parse((await box('images', '--json')).stdout), { images: [DEBIAN], unavailable: [] })
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
  state.progress = [
    { layers: [layer('aaaa1111', 'waiting'), layer('bbbb2222', 'downloading', 1)] },
    { layers: [layer('aaaa1111', 'downloading', 5), layer('bbbb2222', 'downloading', 500_000)] },
    { layers: [layer('aaaa1111', 'complete', 1_000_000), layer('bbbb2222', 'unpacking')] },
  ]
  state.end = { event: 'done', data: { image: { ...DEBIAN, reference: 'python:3.13' } } }
  const { code, stdout, stderr } = await box('images', 'pull', 'python:3.13')
  t.same([code, stdout], [0, ''])
  t.match(
    stderr.split('\n').map((line) => line.replace(/[\d.]+ [KM]iB/, 'SIZE')),
    [
      'bbbb2222: downloading, SIZE',
      'aaaa1111: downloading, SIZE',
      'aaaa1111: complete, SIZE',
      'bbbb2222: unpacking, SIZE',
      'python:3.13: SIZE, digest ab12cd34ef56, in us-east-1',
      '',
    ],
  )
  const result = await box('images', 'pull', 'python:3.13', '--json')
  t.match(JSON.parse(result.stdout), { reference: 'python:3.13', digest: DEBIAN.digest })
  t.equal(result.stderr, '')
})

t.test('pull shows bars on a terminal', async (t) => {
  state.progress = [{ layers: [layer('aaaa1111', 'downloading', 500_000)] }]
  state.end = { event: 'done', data: { image: DEBIAN } }
  const { promise, resolve } = Promise.withResolvers<void>()
  state.released = promise
  const pty = runBoxInPty(t, fake.url, 'box images pull debian:12')
  await pty.waitFor(/aaaa1111 +downloading +█+░+ +488 KiB of 977 KiB/)
  state.released = Promise.resolve()
  resolve()
  await pty.waitFor(/debian:12: .* in us-east-1/)
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
  state.progress = []
  state.end = { event: 'error', data: { code: 'image_not_found', message: 'There is no image no:such.' } }
  t.match(await box('images', 'pull', 'no:such'), {
    code: 5,
    stderr: /^box: There is no image no:such\. \(image_not_found\)\n$/,
  })
  state.end = null
  t.match(await box('images', 'pull', 'debian:12'), {
    stderr: /connection to the coordinator was lost\. Run the command again/,
  })
  t.match(await box('images', 'pull', 'local/x'), {
    code: 1,
    stderr: /`box regions` lists what each region can do/,
  })
})

t.test('rm removes images, and says which boxes use one', async (t) => {
  state.images = [DEBIAN, { ...DEBIAN, reference: 'used:1' }, { ...DEBIAN, reference: 'old:1' }]
  t.match(await box('images', 'rm', 'old:1', 'used:1'), {
    code: 1,
    stderr: /^old:1: removed\nbox: .*`box ls --filter image=used:1`/,
  })
  t.match(await box('images', 'rm', 'old:1', '--region', 'us-east-1'), {
    code: 5,
    stderr: /`box images` lists/,
  })
  t.same(
    state.images.map(({ reference }) => reference),
    ['debian:12', 'used:1'],
  )
})

t.test('box regions shows what each region can do', async (t) => {
  const local = {
    region: 'us-west-2' as const,
    isDefault: true,
    provider: 'local',
    images: false,
    root: false,
    freeze: true,
    resize: 'restart' as const,
    snapshots: true,
    defaultImage: null,
    description: 'Local boxes.',
  }
  state.regions = [
    local,
    {
      ...local,
      region: 'us-east-1',
      isDefault: false,
      provider: 'docker',
      images: true,
      root: true,
      freeze: null,
      resize: 'live',
      defaultImage: 'debian:12',
    },
  ]
  const { stdout } = await box('regions')
  t.match(stdout, /^us-west-2 +local +no +yes +restart +yes +yes +none$/m)
  t.match(stdout, /^us-east-1 +docker +yes +unknown +live +yes +- +any, default debian:12$/m)
  t.equal((await box('regions', '-q', '--filter', 'images=yes')).stdout, 'us-east-1\n')
})

t.test('a new box takes an image', async (t) => {
  const bodies: unknown[] = []
  const fig = await fake.addBox('fig', { image: 'debian:12', imageDigest: 'sha256:ab' })
  fake.handleNext('POST /api/v1/boxes', async (response, request) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    bodies.push(JSON.parse(Buffer.concat(chunks).toString()))
    response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify({ box: fig }))
  })
  t.match(await box('create', '--no-wait', '-q', '--image', 'debian:12', '--region', 'us-east-1'), {
    code: 0,
  })
  t.same(bodies, [{ image: 'debian:12', region: 'us-east-1' }])
  t.match(await box('create', '--image', 'debian:12', '--from', 'web'), {
    code: 2,
    stderr: /--image cannot be combined with --from/,
  })
  t.match((await box('show', 'fig')).stdout, /^image +debian:12, sha256:ab$/m)
  t.match((await box('ls')).stdout, /^fig +running +lite +\w+ +debian:12 +/m)
  t.equal((await box('ls', '-q', '--filter', 'image=debian')).stdout, 'fig\n')
})

t.test('an environment has an image', async (t) => {
  t.match(await box('environments', 'create', 'py', '--image', 'python:3.13'), { code: 0 })
  t.match(environments.environments, [{ name: 'py', image: 'python:3.13' }])
  t.match((await box('environments', 'show', 'py')).stdout, /^image +python:3\.13$/m)
  t.match(await box('environments', 'set', 'py', '--image', ''), { code: 0, stderr: /py: version 2/ })
  t.match(environments.environments, [{ name: 'py', image: null }])
})

t.test('completes images, and the names of the commands', async (t) => {
  state.images = [DEBIAN]
  const complete = async (...words: string[]) => (await box('__complete', '--', ...words)).stdout
  t.match(await complete('create', '--image', ''), /^debian:12\tus-east-1$/m)
  t.match(await complete('images', 'rm', 'deb'), /^debian:12\tus-east-1$/m)
  t.equal(await complete('images', 'pull', ''), '')
  t.match(await complete('images', ''), /^pull\t/m)
})
