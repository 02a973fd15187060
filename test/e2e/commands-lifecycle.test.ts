// The command history of a box that is suspended, woken and deleted, whose agent is killed, or under zero data retention.
import t from 'tap'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { type CoordinatorWithBox, startCoordinatorWithBox } from './coordinator-with-box.ts'

const historyClient = ({ api, box }: CoordinatorWithBox) => ({
  list: async () => (await api('GET', `/boxes/${box.id}/commands`)).json.commands,
  get: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command,
  output: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}/output`)).json,
})

t.test('the history survives suspend, wake and delete', async (t) => {
  const setup = await startCoordinatorWithBox(t)
  const { api, box, exec, waitForState } = setup
  const { list, get, output } = historyClient(setup)
  const done = await exec('echo done')
  const running = await exec('echo started; exec sleep 1000', { detached: true })
  await waitUntil(
    'the output is recorded',
    async () => (await output(running.processId)).data === 'started\n',
  )

  await api('POST', `/boxes/${box.id}/suspend?stop=1`)
  await waitForState(box.id, 'suspended')
  t.match(await get(done.commandId), { status: 'exited' }, 'readable while the box is suspended')
  t.match(await output(done.commandId), { data: 'done\n', done: true })
  t.match(await get(running.processId), { status: 'killed', signal: 'TERM' })
  t.match(await output(running.processId), { data: 'started\n', done: true })

  await api('POST', `/boxes/${box.id}/wake`)
  await waitForState(box.id, 'running')
  t.match((await setup.boxRequest('GET', `/exec/${running.processId}`)).json, { lost: false, signal: 'TERM' })
  t.equal((await list()).length, 2)

  const last = await exec('exec sleep 1000', { detached: true })
  await api('DELETE', `/boxes/${box.id}`)
  await waitForState(box.id, 'terminated')
  t.match(await get(last.processId), { status: 'killed', signal: 'TERM' })
  t.equal((await list()).length, 3, 'the history of a deleted box is readable')
  t.match(await output(done.commandId), { data: 'done\n' })
  t.match(await api('DELETE', `/boxes/${box.id}/commands`), { json: { deleted: 3 } })
})

t.test('when the agent is killed, its synchronous commands are lost and detached ones are not', async (t) => {
  const setup = await startCoordinatorWithBox(t)
  const { box, exec, boxRequest } = setup
  const { list, get, output } = historyClient(setup)
  const detached = await exec('i=0; until test -e go; do i=$((i+1)); echo $i; sleep 0.02; done; exit 7', {
    detached: true,
  })
  const interrupted = boxRequest('POST', '/exec', { command: 'touch started; sleep 1000' })
  await waitUntil('the command started', async () => (await exec('test -e started')).exitCode === 0)
  const id = (await list()).find(({ status, mode }: { status: string; mode: string }) => {
    return mode === 'sync' && status === 'running'
  })?.id
  process.kill(await waitUntil('the agent runs', async () => findAgentPid(box.id)), 'SIGKILL')
  t.equal((await interrupted).status, 502)
  await waitUntil('the agent has reconnected', async () => (await exec('touch go')).exitCode === 0)
  await waitUntil('the synchronous command is lost', async () => (await get(id)).status === 'lost')
  t.match(await get(id), { exitCode: null, signal: null, finishedAt: null })
  await waitUntil(
    'the detached command exited',
    async () => (await get(detached.processId)).status === 'exited',
  )
  t.match(await get(detached.processId), { exitCode: 7, stdoutTruncated: false })
  const { data } = await output(detached.processId)
  const lines = data.trim().split('\n')
  t.same(
    lines,
    Array.from({ length: lines.length }, (_, i) => String(i + 1)),
    'no output is missing',
  )
})

t.test('zero data retention: records that a command ran, without its text and output', async (t) => {
  const setup = await startCoordinatorWithBox(t)
  const { instance: coordinator, exec } = setup
  const { get, output } = historyClient(setup)
  await coordinator.context.db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
  const sync = await exec('echo secret; exit 2', { cwd: '/tmp' })
  const detached = await exec('echo secret', { detached: true })
  t.equal(sync.stdout, 'secret\n', 'the client gets the output')
  await waitUntil(
    'the detached command exited',
    async () => (await get(detached.processId)).status === 'exited',
  )
  const redacted = { command: null, commandTruncated: false, cwd: null, outputKept: false, stdoutBytes: 7 }
  t.match(await get(sync.commandId), { ...redacted, exitCode: 2, status: 'exited' })
  t.match(await get(detached.processId), { ...redacted, exitCode: 0 })
  for (const id of [sync.commandId, detached.processId])
    t.match(await output(id), { data: '', size: 7, skipped: 7, nextOffset: 7, done: true })
  t.same(await coordinator.context.db.selectFrom('command_output').select('size').execute(), [])
})
