// The command history of a real box under zero data retention.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

t.test('zero data retention: records that a command ran, without its text and output', async (t) => {
  const { instance: coordinator, exec, api, box } = await startCoordinatorWithBox(t)
  const get = async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}`)).json.command
  const output = async (id: unknown) => (await api('GET', `/boxes/${box.id}/commands/${id}/output`)).json
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
