// POST /exec with an Idempotency-Key: a command is started once.
import t from 'tap'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

const coordinator = await startCoordinatorWithBox(t)
const { box, boxRequest, exec, api, edge } = coordinator
const start = (body: object, key: string, options = {}) =>
  edge(box.hostname, 'POST', '/exec', body, { headers: { 'idempotency-key': key }, ...options })

t.test('a repeated request returns the first process', async (t) => {
  const body = { command: 'echo once >> repeated; exec sleep 600', detached: true }
  const first = await start(body, 'key-1')
  t.equal(first.status, 200)
  t.match(first.json, {
    type: 'exec.started',
    processId: /^p_[0-9a-f]{24}$/,
    commandId: first.json.processId,
  })
  const responses = await Promise.all([1, 2, 3].map(() => start(body, 'key-1')))
  for (const { status, json } of responses)
    t.match({ status, json }, { status: 200, json: { processId: first.json.processId, pid: first.json.pid } })
  t.match(await exec('cat repeated'), { stdout: 'once\n' })
  const { json } = await api('GET', `/boxes/${box.id}/commands`)
  t.equal(json.commands.filter(({ id }: { id: string }) => id === first.json.processId).length, 1)
  await boxRequest('DELETE', `/exec/${first.json.processId}`)
  t.equal((await start(body, 'key-1')).json.processId, first.json.processId, 'also when it has exited')
  t.match(await exec('cat repeated'), { stdout: 'once\n' })
})

t.test('requests at the same time start one process', async (t) => {
  const body = { command: 'echo once >> parallel', detached: true }
  const responses = await Promise.all(Array.from({ length: 5 }, () => start(body, 'key-2')))
  t.equal(new Set(responses.map(({ json }) => json.processId)).size, 1)
  const { processId } = responses[0]?.json ?? {}
  await boxRequest('GET', `/exec/${processId}/stream`)
  t.match(await exec('cat parallel'), { stdout: 'once\n' })
})

t.test('another command with the same key is refused', async (t) => {
  await start({ command: 'true', detached: true }, 'key-3')
  for (const body of [
    { command: 'false', detached: true },
    { command: 'true', detached: true, cwd: '/tmp' },
    { command: 'true', attached: true },
  ])
    t.match(await start(body, 'key-3'), { status: 422, json: { error: { code: 'idempotency_key_reused' } } })
})

t.test('another key starts another process', async (t) => {
  const body = { command: 'true', detached: true }
  const { json: first } = await start(body, 'key-4')
  const { json: second } = await start(body, 'key-5')
  t.not(first.processId, second.processId)
})

t.test('invalid keys, and commands that run to their end', async (t) => {
  const detached = { command: 'true', detached: true }
  for (const key of ['a b', 'x'.repeat(129)])
    t.match(
      await start(detached, key),
      { status: 400, json: { error: { code: 'invalid_idempotency_key' } } },
      key,
    )
  // Each such request runs the command.
  for (const stdout of ['a\n', 'b\n'])
    t.match(await start({ command: `echo ${stdout.trim()}` }, 'key-6'), { status: 200, json: { stdout } })
})
