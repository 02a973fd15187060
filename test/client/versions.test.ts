// The client, and the box command, with a coordinator that is newer or older, and with one that is behind a proxy that stalls.
import t from 'tap'
import { Boxwood, type BoxwoodError, ConflictError, TimeoutError } from '../../client/exports.ts'
import { startCliCoordinator } from '../cli/coordinator.ts'
import { runBox } from '../cli/run-box.ts'
import { type Json, startVersionProxy } from '../support/version-proxy.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { url, setVersion } = await startVersionProxy(t, coordinator.url)
const { key } = coordinator
const boxwood = new Boxwood({ url, apiKey: key, retryMs: 0 })
const box = await boxwood.boxes.get('fig')

/** Objects whose keys are names that a user has chosen. */
const MAPS = new Set(['labels'])

/** Adds fields to each object. */
function addFields(value: Json, name = ''): Json {
  if (Array.isArray(value)) return value.map((item) => addFields(item))
  if (typeof value !== 'object' || value === null || MAPS.has(name)) return value
  const fields = Object.entries(value).map(([key, field]) => [key, addFields(field, key)])
  return { addedFirst: { nested: [1, null] }, ...Object.fromEntries(fields), addedLast: null }
}

/** Replaces each value of these fields. */
function replaceValues(value: Json, replacements: Record<string, unknown>): Json {
  if (Array.isArray(value)) return value.map((item) => replaceValues(item, replacements))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key,
      field !== null && Object.hasOwn(replacements, key)
        ? replacements[key]
        : replaceValues(field, replacements),
    ]),
  )
}

const LATER_EVENTS = [
  ': a comment of tomorrow',
  'retry: 1000\nevent: resumed\ndata: {"position":[1,2]}',
  'event: note\ndata: this is not JSON',
  'event: empty\ndata',
  'data: {"unnamed":true}',
]
  .map((event) => `${event}\n\n`)
  .join('')

const NEWER = {
  changeBody: (body: Json) => addFields(body),
  changeEvent: (data: Json) => addFields(data),
  beforeEvent: LATER_EVENTS,
}

/** The values of enums that a later version could add. */
const LATER_VALUES = {
  observedState: 'hibernating',
  tier: 'huge',
  region: 'mars-1',
  kind: 'cluster',
  status: 'evicted',
  mode: 'scheduled',
  type: 'whiteout',
  access: 'friends',
}

t.test('newer: fields, events and comments that are not known', async (t) => {
  setVersion(NEWER)
  const created = await boxwood.boxes.create({ name: 'later', labels: { of: 'tomorrow' } })
  t.match(created.data, { labels: { of: 'tomorrow' }, addedFirst: { nested: [1, null] } })
  t.match(await created.exec('seq 1 5000 | tail -n 1; echo error >&2; exit 3'), {
    status: 'exited',
    exitCode: 3,
    stdout: '5000\n',
    stderr: 'error\n',
  })
  const command = await created.start('echo started')
  t.match(await command.wait(), { status: 'exited', exitCode: 0 })
  t.match(await command.status(), { running: false })
  await created.files.write('notes', 'text')
  t.equal(await created.files.read('notes'), 'text')
  t.match(await created.files.stat('notes'), { type: 'file', size: 4 })
  const names: string[] = []
  for await (const { name } of created.files.list('.')) names.push(name)
  t.ok(names.includes('notes'))
  t.ok(Array.isArray((await created.ports.list()).shares))
  const boxes: string[] = []
  for await (const { name } of boxwood.boxes.list({ labels: ['of=tomorrow'] })) boxes.push(name)
  t.same(boxes, ['later'])
  await created.suspend()
  await created.wake()
  t.match(await created.snapshot({ name: 'of-tomorrow' }), { status: 'available' })
  await created.delete()
})

t.test('newer: values that are not known are passed on', async (t) => {
  setVersion({
    changeBody: (body) => replaceValues(addFields(body), LATER_VALUES),
    changeEvent: (data) => replaceValues(addFields(data), LATER_VALUES),
    beforeEvent: LATER_EVENTS,
  })
  t.match((await boxwood.boxes.get('fig')).data, { observedState: 'hibernating', tier: 'huge' })
  t.match(await box.exec('exit 4'), { status: 'evicted', exitCode: 4 })
  const types = new Set<string>()
  for await (const { type } of box.files.list('.')) types.add(type)
  t.ok([...types].every((type) => type === 'whiteout'))
})

t.test('newer: a state that is not known does not end waiting, and a change of the plan does', async (t) => {
  let polls = 0
  setVersion({
    changeBody: (body, line) =>
      line.startsWith('GET /api/v1/boxes/') && ++polls < 4
        ? replaceValues(body, { observedState: 'hibernating' })
        : body,
  })
  await box.waitUntilRunning()
  t.equal(polls, 4)
  t.equal(box.data.observedState, 'running')
  setVersion({ changeBody: (body) => replaceValues(body, { observedState: 'hibernating' }) })
  await t.rejects(box.waitUntilRunning({ timeoutMs: 200 }), TimeoutError)
  setVersion({
    changeBody: (body) => replaceValues(body, { observedState: 'hibernating', desiredState: 'archived' }),
  })
  const error = await box.waitUntilRunning().catch((rejection: BoxwoodError) => rejection)
  t.ok(error instanceof ConflictError)
  t.match(error, { code: 'state_changed', message: /archived/ })
})

t.test(
  'newer: codes and statuses that are not known arrive, and Retry-After of them is passed on',
  async (t) => {
    const families: [number, string][] = [
      [418, 'InvalidRequestError'],
      [422, 'InvalidRequestError'],
      [451, 'InvalidRequestError'],
      [404, 'NotFoundError'],
      [409, 'ConflictError'],
      [507, 'UnavailableError'],
      [599, 'UnavailableError'],
    ]
    for (const [status, name] of families)
      for (const body of [
        { error: 'of_tomorrow', message: 'A new code.', hint: 1 },
        { ok: false, error: { code: 'of_tomorrow', message: 'A new code.', hint: 1 } },
      ]) {
        setVersion({ respond: () => ({ status, body, headers: { 'retry-after': '3600' } }) })
        await t.rejects(box.exec('true'), {
          name,
          code: 'of_tomorrow',
          message: 'A new code.',
          status,
          fields: { hint: 1 },
          retryAfterMs: 3_600_000,
        })
      }
    setVersion({ respond: () => ({ status: 400, body: { error: 'of_tomorrow' } }) })
    await t.rejects(box.refresh(), { code: 'of_tomorrow', message: 'of_tomorrow' })
    for (const body of [null, 'text', 7, [], {}, { error: null }, { error: { code: 5 } }]) {
      setVersion({ respond: () => ({ status: 400, body }) })
      await t.rejects(box.refresh(), { code: 'invalid_response', status: 400 })
    }
  },
)

t.test('newer: an error of a stream whose code is not known is temporary', async (t) => {
  setVersion({})
  const command = await box.start('echo output')
  let streams = 0
  setVersion({
    changeEvent: (data) => {
      streams += 1
      return streams === 1 ? { ...data, processId: 1 } : data
    },
    beforeEvent: 'event: error\ndata: {"code":"of_tomorrow","message":"Once more."}\n\n',
  })
  const impatient = new Boxwood({ url, apiKey: key, outageMs: 1 })
  const waiting = (await impatient.boxes.get('fig')).process(command.id).wait()
  await t.rejects(waiting, { code: 'of_tomorrow', message: 'Once more.', status: 503 })
})

t.test('a response that is not what the route has is an error, and no TypeError', async (t) => {
  for (const body of [null, [], {}, 'text', 1]) {
    setVersion({ changeBody: () => body })
    const calls: (() => Promise<unknown>)[] = [
      () => boxwood.boxes.get('fig'),
      () => boxwood.boxes.list().next(),
      () => box.refresh(),
      () => box.start('true'),
      () => box.ports.unshare(3000),
      () => box.files.stat('.'),
      () => box.files.list('.').next(),
      () => box.snapshot({ name: 'none' }),
      () => box.prompts.start({ provider: 'claude', prompt: 'Hello' }),
    ]
    for (const call of calls) await t.rejects(call(), { code: /^(invalid_response|provider_not_ready)$/ })
  }
  setVersion({})
  const command = await box.start('echo output')
  for (const change of [
    (data: Json) => ({ ...data, data: '%' }),
    (data: Json) => ({ ...data, data: null }),
    (data: Json) => ({ ...data, nextOffset: undefined }),
    () => [],
    () => 'text',
  ]) {
    setVersion({ changeEvent: (data, name) => (name === 'stdout' ? change(data) : data) })
    await t.rejects(command.output().next(), { code: 'invalid_response' })
  }
  setVersion({ changeEvent: (data, name) => (name === 'exit' ? { ...data, exitCode: 'none' } : data) })
  await t.rejects(command.wait(), { code: 'invalid_response' })
})

t.test('older: routes, parameters and fields that do not exist yet', async (t) => {
  const notFound = { error: 'not_found', message: 'Not found.' }
  setVersion({
    respond: (line) => (/port-shares|\/prompts/.test(line) ? { status: 404, body: notFound } : undefined),
    changeBody: (body, line) => {
      const { nextBefore: _before, nextCursor: _cursor, edge: _edge, job: _job, ...rest } = body
      // It ignores the filter, and lists all boxes.
      if (/^GET \/api\/v1\/boxes\?/.test(line)) rest.boxes = [box.data]
      return rest
    },
    changeEvent: ({ hasTimes: _times, timedOut: _timedOut, signal: _signal, ...data }) => data,
  })
  const older = new Boxwood({ url, apiKey: key })
  const same = await older.boxes.get('fig')
  t.equal(same.id, box.id)
  await t.rejects(older.boxes.get('other'), { code: 'no_such_box' })
  t.match(await same.exec('echo out; exit 2'), {
    exitCode: 2,
    stdout: 'out\n',
    signal: null,
    timedOut: false,
  })
  await t.rejects(same.ports.list(), { name: 'NotFoundError', code: 'not_found' })
  await t.rejects(same.prompts.start({ provider: 'claude', prompt: 'Hello' }), { code: 'not_found' })
  await same.waitUntilRunning()
  const names: string[] = []
  for await (const { name } of older.boxes.list()) names.push(name)
  t.same(names, ['fig'])
  for await (const { name } of same.files.list('.')) t.type(name, 'string')
})

t.test('older: a command starts without the support of Idempotency-Key', async (t) => {
  setVersion({ withoutHeaders: ['idempotency-key'] })
  t.match(await box.exec('echo once >> starts; cat starts'), { exitCode: 0, stdout: 'once\n' })
})

t.test('the box command with newer and older coordinators', async (t) => {
  const target = { url, key }
  setVersion({
    changeBody: (body) =>
      replaceValues(addFields(body), { tier: 'huge', region: 'mars-1', mode: 'scheduled' }),
    changeEvent: (data) => addFields(data),
    beforeEvent: LATER_EVENTS,
  })
  t.match(await runBox(target, ['exec', 'fig', '--', 'echo out; exit 3']), { code: 3, stdout: 'out\n' })
  for (const args of [['ls'], ['show', 'fig'], ['logs', 'fig']])
    t.match(await runBox(target, args), { code: 0, stderr: '' }, args.join(' '))
  setVersion({
    changeBody: (body) => replaceValues(body, { observedState: 'hibernating', status: 'evicted' }),
  })
  t.match(await runBox(target, ['ls']), { code: 0, stdout: /hibernating/ })
  setVersion({ respond: () => ({ status: 451, body: { error: 'of_tomorrow', message: 'A new code.' } }) })
  const refused = await runBox(target, ['ls'])
  t.not(refused.code, 0)
  t.match(refused.stderr, /A new code\./)
})
