// Regions with images: what they list, which images boxes get, and the downloads and removals of images.
import t, { type Test } from 'tap'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { FakeImages, withImages } from '../../support/fake-images.ts'
import { FakeInfrastructure } from '../../support/fake-infrastructure.ts'
import { waitUntil } from '../../support/wait-until.ts'

const WITHOUT_IMAGES = 'us-west-2'
const WITH_IMAGES = 'us-east-1'

async function setUp(t: Test, regions: 'both' | 'local' | 'docker' = 'both') {
  const infra = new FakeInfrastructure()
  const engine = new FakeInfrastructure(infra)
  const images = new FakeImages()
  images.registry.add(images.normalize('python:3.13'))
  const all = [
    [WITHOUT_IMAGES, { ...infra.provider, name: 'local' }],
    [WITH_IMAGES, withImages(engine.provider, images)],
  ] as const
  const served = regions === 'both' ? all : all.filter(([, { name }]) => name === regions)
  const coordinator = await startTestCoordinator(t, { infra, providers: createProviders(new Map(served)) })
  const { api, waitForState, instance } = coordinator
  const { db } = instance.context
  return {
    ...coordinator,
    images,
    engine,
    db,
    create: (body: object) => api('POST', '/boxes', body),
    async createRunning(body: object) {
      const { json } = await api('POST', '/boxes', body)
      return waitForState(json.box.id, 'running')
    },
    /** Owners change policies with a session, which other tests do. */
    async setAllowedImages(allowedImages: string[] | null) {
      await db.deleteFrom('policies').execute()
      const { id } = await db.selectFrom('workspaces').select('id').executeTakeFirstOrThrow()
      const policy = JSON.stringify({ allowedImages })
      const row = { workspace_id: id, policy, updated_by: null, updated_at: 1 }
      await db.insertInto('policies').values(row).execute()
    },
  }
}

t.test('the regions say what their boxes can do', async (t) => {
  const { api } = await setUp(t)
  const { json } = await api('GET', '/regions')
  t.match(json.regions, [
    {
      ...{ region: WITHOUT_IMAGES, isDefault: true, provider: 'local', images: false, root: false },
      ...{ freeze: null, resize: 'restart', snapshots: true, defaultImage: null },
      description: 'machines in memory',
    },
    {
      ...{ region: WITH_IMAGES, isDefault: false, provider: 'docker', images: true, root: true },
      ...{ freeze: true, resize: 'restart', snapshots: true, defaultImage: 'debian:12' },
    },
  ])
})

t.test('a new box gets its image and a region that has images', async (t) => {
  const { create, createRunning, images, api, waitForState } = await setUp(t)
  const box = await createRunning({ image: 'python:3.13' })
  t.match(box, { region: WITH_IMAGES, image: 'python:3.13', isolation: { level: 'process' } })
  const digest = images.downloaded.get('docker.io/library/python:3.13')?.digest ?? ''
  t.equal(box.imageDigest, digest, 'the image was downloaded')
  t.match(
    (await create({ region: WITH_IMAGES })).json.box,
    { image: 'debian:12' },
    'the default of the region',
  )
  t.match((await create({})).json.box, { region: WITHOUT_IMAGES, image: null, imageDigest: null })

  const { json: taken } = await api('POST', '/snapshots', { boxId: box.id, name: 'taken' })
  t.equal(taken.snapshot.image, 'python:3.13')
  await waitUntil('the snapshot is available', async () => {
    const { json } = await api('GET', '/snapshots')
    return json.snapshots[0].status === 'available'
  })
  const { json: restored } = await create({ fromSnapshotId: taken.snapshot.id })
  t.match(restored.box, { region: WITH_IMAGES, image: 'python:3.13', imageDigest: digest })
  const { json: forked } = await api('POST', `/boxes/${box.id}/fork`, {})
  t.match(forked.box, { region: WITH_IMAGES, image: 'python:3.13', imageDigest: digest })
  await waitForState(forked.box.id, 'running')
  const refused = await create({ fromSnapshotId: taken.snapshot.id, image: 'debian:12' })
  t.match(refused, { status: 400, json: { error: 'invalid_image' } })
})

t.test('a box cannot get an image that is not valid, or where there are none', async (t) => {
  const { create } = await setUp(t)
  const unavailable = { error: 'images_unavailable', regions: [WITH_IMAGES] }
  for (const [body, expected] of [
    [{ image: 'debian:12', region: WITHOUT_IMAGES }, unavailable],
    [{ image: '' }, { error: 'invalid_image' }],
    [{ image: '-v' }, { error: 'invalid_image' }],
    [{ image: `a${'b'.repeat(255)}` }, { error: 'invalid_image' }],
    [{ image: 12 }, { error: 'invalid_image' }],
    [{ image: null }, { error: 'invalid_image' }],
    [{ image: 'a b' }, { error: 'invalid_image' }],
    [{ image: 'Debian' }, { error: 'invalid_image', message: 'image must be in lower case' }],
    [{ image: 'debian:12', region: 'eu-central-1' }, { error: 'invalid_region' }],
  ] as const)
    t.match(await create(body), { status: 400, json: expected }, JSON.stringify(body))
  const local = await setUp(t, 'local')
  t.match(await local.create({ image: 'debian:12' }), {
    status: 400,
    json: { error: 'images_unavailable', regions: [] },
  })
  const docker = await setUp(t, 'docker')
  t.match((await docker.create({})).json.box, { region: WITH_IMAGES, image: 'debian:12' })
})

t.test('an unknown image ends the creation of the box with its message', async (t) => {
  const { create, waitForState, api } = await setUp(t)
  const { json } = await create({ image: 'missing' })
  await waitForState(json.box.id, 'provision_failed')
  const { json: detail } = await api('GET', `/boxes/${json.box.id}`)
  t.match(detail.events[0], {
    toState: 'provision_failed',
    reason: 'There is no image docker.io/library/missing:latest.',
    code: 'image_not_found',
  })
})

t.test('a box is deleted while the engine of another region is down', async (t) => {
  const { createRunning, api, engine, waitForState } = await setUp(t)
  const box = await createRunning({})
  engine.before.destroy = () => {
    throw new Error('the engine is down')
  }
  await api('DELETE', `/boxes/${box.id}`)
  await waitForState(box.id, 'terminated')
})

t.test('an environment has an image for new boxes', async (t) => {
  const { create, api } = await setUp(t)
  const environment = { name: 'python', image: 'python:3.13' }
  const { json } = await api('POST', '/environments', environment)
  t.match(json.environment, { image: 'python:3.13', latestVersionNo: 1 })
  t.match((await create({ environment: 'python' })).json.box, { region: WITH_IMAGES, image: 'python:3.13' })
  const explicit = await create({ environment: 'python', image: 'debian:12' })
  t.match(explicit.json.box, { image: 'debian:12' }, 'the image of the request has precedence')
  const elsewhere = await create({ environment: 'python', region: WITHOUT_IMAGES })
  t.match(elsewhere, { status: 400, json: { error: 'images_unavailable', regions: [WITH_IMAGES] } })
  const { id } = json.environment
  const invalid = await api('PATCH', `/environments/${id}`, { image: '-' })
  t.match(invalid, { status: 400, json: { error: 'invalid_image' } })
  await api('PATCH', `/environments/${id}`, { image: 'UPPER' })
  const refused = await create({ environment: 'python' })
  t.match(refused, { status: 400, json: { error: 'invalid_image', message: /UPPER of the environment/ } })
  const cleared = await api('PATCH', `/environments/${id}`, { image: null })
  t.match(cleared.json.environment, { image: null, latestVersionNo: 3 })
  t.match((await create({ environment: 'python' })).json.box, { region: WITHOUT_IMAGES, image: null })
})

t.test('the policy allowedImages limits new boxes, their copies and downloads', async (t) => {
  const { create, createRunning, api, setAllowedImages } = await setUp(t)
  const box = await createRunning({ image: 'python:3.13' })
  await api('POST', '/environments', { name: 'python', image: 'python:3.13' })
  const { json: taken } = await api('POST', '/snapshots', { boxId: box.id, name: 'taken' })
  await waitUntil('the snapshot is available', async () => {
    const { json } = await api('GET', '/snapshots')
    return json.snapshots[0].status === 'available'
  })
  const requests = [
    ['/boxes', { image: 'python:3.13' }],
    ['/boxes', { environment: 'python' }],
    ['/boxes', { fromSnapshotId: taken.snapshot.id }],
    [`/snapshots/${taken.snapshot.id}/restore`, {}],
    [`/boxes/${box.id}/fork`, {}],
    ['/images', { image: 'python:3.13' }],
  ] as const
  for (const allowed of [['python:*'], ['docker.io/library/*3.13'], ['*'], ['debian', 'python:3.13'], null]) {
    await setAllowedImages(allowed)
    for (const [path, body] of requests)
      t.ok((await api('POST', path, body)).status < 300, `${allowed} ${path}`)
  }
  for (const allowed of [[], ['debian:*'], ['ython:3.13'], ['python:3.1*30'], ['docker.io/*/*/*']]) {
    await setAllowedImages(allowed)
    for (const [path, body] of requests)
      t.match(
        await api('POST', path, body),
        { status: 403, json: { error: 'policy_denied', rule: 'allowedImages', message: /python:3\.13/ } },
        `${allowed} ${path}`,
      )
  }
  t.equal((await create({})).status, 202, 'a box without an image')
  t.equal((await create({ region: WITH_IMAGES })).status, 403, 'the default image')
})

t.test('images are downloaded, listed and removed', async (t) => {
  const { api, images, createRunning } = await setUp(t)
  t.same((await api('GET', '/images')).json, { images: [], unavailable: [] })
  const { json, status } = await api('POST', '/images', { image: 'python:3.13' })
  const name = 'docker.io/library/python:3.13'
  t.equal(status, 200)
  t.match(json.image, {
    reference: name,
    region: WITH_IMAGES,
    sizeBytes: 10,
    digest: `sha256:${name.length}`,
  })
  t.same((await api('GET', `/images?region=${WITH_IMAGES}`)).json.images, [json.image])
  const box = await createRunning({ image: 'python:3.13' })
  const remove = (image: string) => api('DELETE', `/images?image=${image}`)
  t.match(await remove(name), {
    status: 409,
    json: { error: 'image_in_use', message: `The image ${name} is used by 1 box. Delete them first.` },
  })
  await api('DELETE', `/boxes/${box.id}`)
  await waitUntil('the box is deleted', async () => {
    const { json } = await api('GET', `/boxes/${box.id}`)
    return json.box.observedState === 'terminated'
  })
  t.match(await remove('python:3.13'), { status: 204 })
  t.equal(images.downloaded.size, 0)
  t.match(await remove('python:3.13'), { status: 204 }, 'a repeated request has no effect')
  t.match(await remove('python:3.12'), { status: 404, json: { error: 'image_not_found' } })
  images.downloaded.set('built:1', { reference: 'built:1', digest: null, sizeBytes: 1, createdAt: null })
  images.normalize = (reference) => reference
  t.match(await remove('built:1'), { status: 409, json: { error: 'image_not_downloaded' } })
  const { json: log } = await api('GET', '/audit')
  const kinds = log.events.map(({ kind, detail }: { kind: string; detail: object }) => [kind, detail])
  const detail = { image: 'python:3.13', region: WITH_IMAGES }
  t.match(
    kinds.filter(([kind]: [string]) => kind.startsWith('image.')),
    [
      ['image.remove', detail],
      ['image.pull', detail],
    ],
  )
})

t.test('requests on images are refused', async (t) => {
  const { api, images } = await setUp(t)
  const refusals: [string, string, object | undefined, number, object][] = [
    ['POST', '/images', {}, 400, { error: 'invalid_image' }],
    ['POST', '/images', { image: 'Debian' }, 400, { error: 'invalid_image' }],
    ['POST', '/images', { image: 'a', region: 'x' }, 400, { error: 'invalid_region' }],
    ['POST', '/images', { image: 'a', region: WITHOUT_IMAGES }, 400, { error: 'images_unavailable' }],
    ['POST', '/images', { image: 'missing' }, 404, { error: 'image_not_found' }],
    ['GET', `/images?region=${WITHOUT_IMAGES}`, undefined, 400, { error: 'images_unavailable' }],
    ['DELETE', '/images', undefined, 400, { error: 'invalid_image' }],
    ['DELETE', '/images?image=missing', undefined, 404, { error: 'image_not_found' }],
  ]
  for (const [method, path, body, status, json] of refusals)
    t.match(await api(method, path, body), { status, json }, `${method} ${path} ${JSON.stringify(body)}`)
  images.beforeCall = () => {
    throw new Error('connect ENOENT /run/engine.sock')
  }
  t.same((await api('GET', '/images')).json, {
    images: [],
    unavailable: [{ region: WITH_IMAGES, message: 'connect ENOENT /run/engine.sock' }],
  })
  t.match(await api('DELETE', '/images?image=debian:12'), {
    status: 503,
    json: { error: 'control_plane_unavailable', message: /ENOENT/ },
  })
  images.download = () => Promise.reject(new Error('read ECONNRESET'))
  t.match(await api('POST', '/images', { image: 'debian:12' }), {
    status: 502,
    json: { error: 'image_pull_failed', message: 'read ECONNRESET' },
  })
})

t.test('a download streams its progress, and ends when its last client disconnects', async (t) => {
  const { api, images, url, key } = await setUp(t)
  const finish = Promise.withResolvers<void>()
  const reported = Promise.withResolvers<void>()
  let isAborted = false
  let downloads = 0
  images.download = async (_reference, onProgress, signal) => {
    downloads++
    onProgress({ layers: [{ id: 'a', status: 'downloading', currentBytes: 1, totalBytes: 2 }] })
    reported.resolve()
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        isAborted = true
        reject(signal.reason)
      })
    })
    await Promise.race([finish.promise, aborted])
    onProgress({ layers: [{ id: 'a', status: 'complete', currentBytes: 2, totalBytes: 2 }] })
  }
  const stream = (image: string, signal: AbortSignal | null = null) =>
    fetch(`${url}/api/v1/images`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'text/event-stream',
      },
      body: JSON.stringify({ image }),
      signal,
    })
  const client = new AbortController()
  const interrupted = await stream('debian:12', client.signal)
  t.equal(interrupted.headers.get('content-type'), 'text/event-stream')
  await reported.promise
  const other = api('POST', '/images', { image: 'docker.io/library/debian:12' })
  const complete = await stream('debian:12')
  const reader = complete.body?.pipeThrough(new TextDecoderStream()).getReader()
  client.abort()
  finish.resolve()
  let text = ''
  for (;;) {
    const chunk = await reader?.read()
    if (chunk === undefined || chunk.done) break
    text += chunk.value
  }
  const events = text
    .split('\n\n')
    .filter((event) => event.startsWith('event: '))
    .map((event) => [/^event: (.*)$/m.exec(event)?.[1], JSON.parse(/^data: (.*)$/m.exec(event)?.[1] ?? '')])
  t.match(events.at(-2), ['progress', { layers: [{ id: 'a', status: 'complete' }] }])
  t.match(events.at(-1), ['done', { image: { reference: 'docker.io/library/debian:12' } }])
  t.match(await other, { status: 200 })
  t.equal(downloads, 1, 'the requests shared the download')
  t.equal(isAborted, false)

  const failed = await stream('missing')
  t.match(
    await failed.text(),
    /event: error\nid: \d+\ndata: {"code":"image_not_found","message":"There is no/,
  )

  const last = new AbortController()
  const started = Promise.withResolvers<AbortSignal>()
  images.download = (_reference, _onProgress, signal) => {
    started.resolve(signal)
    return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  await stream('python:3.13', last.signal)
  const signal = await started.promise
  last.abort()
  await waitUntil('the download ends', () => signal.aborted)
})
