// 50 equal creates, forks and restores at once make one box each, also when the coordinator is killed meanwhile.
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const REQUESTS = 50

t.test('equal requests make one box, also across a kill of the coordinator', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { send, sendJson, start, kill, waitForState } = coordinator
  const first = await coordinator.waitForFirstBox()
  const { snapshot } = await sendJson('POST', '/api/v1/snapshots', { boxId: first.id, name: 'source' })
  await waitUntil('the snapshot is available', async () => {
    const { snapshots } = await sendJson('GET', '/api/v1/snapshots')
    return snapshots.some(
      ({ id, status }: { id: string; status: string }) => id === snapshot.id && status === 'available',
    )
  })

  type Answer = { status: number; boxId: string | undefined; text: string }
  async function request(path: string, key: string): Promise<Answer> {
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const response = await send('POST', `/api/v1${path}`, '{"tier":"nano"}', headers)
    const text = Buffer.concat(await response.toArray()).toString()
    return { status: response.statusCode ?? 0, boxId: JSON.parse(text).box?.id, text }
  }
  const requestAll = (path: string, key: string) =>
    Promise.allSettled(Array.from({ length: REQUESTS }, () => request(path, key)))
  const countBoxes = async () => (await sendJson('GET', '/api/v1/boxes?live=1')).boxes.length

  const ROUTES = {
    create: '/boxes',
    fork: `/boxes/${first.id}/fork`,
    restore: `/snapshots/${snapshot.id}/restore`,
  }
  /** What the kill waits for after the requests have been sent. */
  const MOMENTS = {
    'at once': async () => undefined,
    'after the first response': (answers: Promise<unknown>[]) => Promise.any(answers),
  }
  // The routes share the code that stores the response of a key.
  const ROUNDS = [
    ['create', 'at once'],
    ['create', 'after the first response'],
    ['fork', 'at once'],
    ['restore', 'after the first response'],
  ] as const
  for (const [name, moment] of ROUNDS)
    await t.test(`${name}, killed ${moment}`, async (t) => {
      const path = ROUTES[name]
      const waitForMoment = MOMENTS[moment]
      const key = `${name}-${moment.replaceAll(' ', '-')}`
      const before = await countBoxes()
      const sent = Array.from({ length: REQUESTS }, () => request(path, key))
      const settled = Promise.allSettled(sent)
      await waitForMoment(sent)
      await kill('SIGKILL')
      const early = (await settled).flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
      await start()
      // A client repeats its request until it gets the box.
      const answers = await waitUntil('every request gets the box', async () => {
        const results = await requestAll(path, key)
        const values = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
        for (const { status } of values) t.ok([202, 409].includes(status))
        return values.length === REQUESTS && values.every(({ status }) => status === 202) && values
      })
      const accepted = [...early, ...answers].filter(({ status }) => status === 202)
      t.equal(new Set(accepted.map(({ text }) => text)).size, 1, 'the same response')
      t.equal(await countBoxes(), before + 1, 'one box')
      const id = answers[0]?.boxId ?? ''
      await waitForState(id, 'running')
      await sendJson('DELETE', `/api/v1/boxes/${id}`)
      await waitForState(id, 'terminated')
    })
  const { snapshots } = await sendJson('GET', '/api/v1/snapshots?transient=1')
  t.ok(snapshots.length <= 1 + 2, 'the source, and at most one copy of each fork')
})
