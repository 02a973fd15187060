// The command history through everything that can happen to a box: paused, deleted, its agent killed, its data not kept.
import t from 'tap'
import { agentPid } from '../support/agent-pid.ts'
import { eventually } from '../support/coordinator-process.ts'
import { type EdgeBox, edgeBox } from './edge-box.ts'

const historyOf = ({ api, box }: EdgeBox) => ({
  list: async () => (await api('GET', `/boxes/${box.id}/commands`)).json.commands,
  one: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command,
  output: async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}/output`)).json,
})

t.test('a box is paused, woken and deleted', async (t) => {
  const setting = await edgeBox(t)
  const { api, box, exec, until } = setting
  const { list, one, output } = historyOf(setting)
  const done = await exec('echo done')
  const running = await exec('echo begun; exec sleep 1000', { detached: true })
  await eventually('its output is there', async () => (await output(running.processId)).data === 'begun\n')

  await api('POST', `/boxes/${box.id}/suspend`)
  await until(box.id, 'suspended')
  t.match(await one(done.commandId), { status: 'exited' }, 'readable while it is paused')
  t.match(await output(done.commandId), { data: 'done\n', done: true })
  const presumed = await one(running.processId)
  t.ok(['lost', 'killed'].includes(presumed.status), `it ended with the box: ${presumed.status}`)
  t.match(await output(running.processId), { data: 'begun\n', done: true })

  await api('POST', `/boxes/${box.id}/wake`)
  await until(box.id, 'running')
  const seen = (await setting.ask('GET', `/exec/${running.processId}`)).json
  await eventually('the box and the history say the same', async () => {
    const { status, exitCode, signal } = await one(running.processId)
    return seen.lost
      ? status === 'lost'
      : status !== 'lost' && exitCode === seen.exitCode && signal === seen.signal
  })
  t.equal((await list()).length, 2)

  const last = await exec('exec sleep 1000', { detached: true })
  await api('DELETE', `/boxes/${box.id}`)
  await until(box.id, 'terminated')
  t.equal((await one(last.processId)).status, 'lost')
  t.equal((await list()).length, 3, 'the history is readable as the box is')
  t.match(await output(done.commandId), { data: 'done\n' })
  t.match(await api('DELETE', `/boxes/${box.id}/commands`), { json: { deleted: 3 } })
})

t.test('the agent is killed: what it ran itself is lost, what runs by itself is not', async (t) => {
  const setting = await edgeBox(t)
  const { box, exec, ask } = setting
  const { list, one, output } = historyOf(setting)
  const detached = await exec('i=0; until test -e go; do i=$((i+1)); echo $i; sleep 0.02; done; exit 7', {
    detached: true,
  })
  const cut = ask('POST', '/exec', { command: 'touch began; sleep 1000' })
  await eventually('it began', async () => (await exec('test -e began')).exitCode === 0)
  const id = (await list()).find(({ status, mode }: { status: string; mode: string }) => {
    return mode === 'sync' && status === 'running'
  })?.id
  process.kill(agentPid(box.id) ?? 0, 'SIGKILL')
  t.equal((await cut).status, 502)
  await eventually('its agent is back', async () => (await exec('touch go')).exitCode === 0)
  await eventually('it is known to be lost', async () => (await one(id)).status === 'lost')
  t.match(await one(id), { exitCode: null, signal: null, finishedAt: null })
  await eventually('the other one ended', async () => (await one(detached.processId)).status === 'exited')
  t.match(await one(detached.processId), { exitCode: 7, stdoutTruncated: false })
  const { data } = await output(detached.processId)
  const lines = data.trim().split('\n')
  t.same(
    lines,
    Array.from({ length: lines.length }, (_, i) => String(i + 1)),
    'whole',
  )
})

t.test('zero data retention: no text, no output, and that it ran', async (t) => {
  const setting = await edgeBox(t)
  const { coordinator, exec } = setting
  const { one, output } = historyOf(setting)
  await coordinator.context.db.updateTable('workspaces').set({ zero_data_retention: 1 }).execute()
  const sync = await exec('echo secret; exit 2', { cwd: '/tmp' })
  const detached = await exec('echo secret', { detached: true })
  t.equal(sync.stdout, 'secret\n', 'the caller gets everything')
  await eventually('it ended', async () => (await one(detached.processId)).status === 'exited')
  const bare = { command: null, commandTruncated: false, cwd: null, outputKept: false, stdoutBytes: 7 }
  t.match(await one(sync.commandId), { ...bare, exitCode: 2, status: 'exited' })
  t.match(await one(detached.processId), { ...bare, exitCode: 0 })
  for (const id of [sync.commandId, detached.processId])
    t.match(await output(id), { data: '', size: 7, skipped: 7, nextOffset: 7, done: true })
  t.same(await coordinator.context.db.selectFrom('command_output').select('size').execute(), [])
})
