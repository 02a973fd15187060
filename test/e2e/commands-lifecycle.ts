// The command history of a box whose agent is killed, and that is suspended, woken and deleted.
import t from 'tap'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import type { CoordinatorWithBox } from './coordinator-with-box.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const historyClient = ({ api, box }: CoordinatorWithBox) => ({
  list: async () => (await api('GET', `/boxes/${box.id}/commands`)).json.commands,
  get: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command,
  output: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}/output`)).json,
})

t.test('when the agent is killed, its synchronous commands are lost and detached ones are not', async (t) => {
  const setup = sharedCoordinator
  const { box, exec, boxRequest } = setup
  const { list, get, output } = historyClient(setup)
  const detached = await exec(
    'i=0; until test -e proceed; do i=$((i+1)); echo $i; sleep 0.02; done; exit 7',
    {
      detached: true,
    },
  )
  const interrupted = boxRequest('POST', '/exec', { command: 'touch running; sleep 1000' })
  await waitUntil('the command started', async () => (await exec('test -e running')).exitCode === 0)
  const id = (await list()).find(({ status, mode }: { status: string; mode: string }) => {
    return mode === 'sync' && status === 'running'
  })?.id
  process.kill(await waitUntil('the agent runs', async () => findAgentPid(box.id)), 'SIGKILL')
  t.equal((await interrupted).status, 502)
  await waitUntil('the agent has reconnected', async () => (await exec('touch proceed')).exitCode === 0)
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

t.test('the history survives suspend, wake and delete', async (t) => {
  const setup = sharedCoordinator
  const { api, box, exec, waitForState } = setup
  const { list, get, output } = historyClient(setup)
  await api('DELETE', `/boxes/${box.id}/commands`)
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
