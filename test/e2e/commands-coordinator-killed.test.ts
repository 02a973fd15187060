// kill -9 of the coordinator while commands run: afterwards all records are complete, without duplicates.
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const coordinator = await startCoordinatorProcess(t)
const { sendJson, exec, start, kill, waitForState } = coordinator
const box = await coordinator.waitForFirstBox()
const history = `/api/v1/boxes/${box.id}/commands`
const getCommand = async (id: string) => (await sendJson('GET', `${history}/${id}`)).command

t.test('records commands that ran while the coordinator was down', async (t) => {
  const shortCommand = await exec(box.hostname, 'echo short')
  const command =
    'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; done; sleep 1; echo end >&2; exit 9'
  const detached = await exec(box.hostname, command, { detached: true })
  const interrupted = exec(box.hostname, 'touch started; sleep 1000').catch((error) => error)
  await waitUntil(
    'the command started',
    async () => (await exec(box.hostname, 'test -e started')).exitCode === 0,
  )
  await kill('SIGKILL')
  t.type(await interrupted, Error)
  await start()

  await waitUntil(
    'the record is complete',
    async () => (await getCommand(detached.processId))?.status === 'exited',
  )
  t.match(await getCommand(detached.processId), { mode: 'detached', command, exitCode: 9, stderrBytes: 4 })
  const { data, done } = await sendJson('GET', `${history}/${detached.processId}/output`)
  t.ok(done)
  t.equal(data, Array.from({ length: 3000 }, (_, i) => `line ${i + 1}\n`).join(''))
  t.match(
    await getCommand(shortCommand.commandId),
    { status: 'exited', stdoutBytes: 6 },
    'the record of a command whose response had arrived',
  )

  const { commands } = await sendJson('GET', `${history}?limit=200`)
  const terminated = commands.find(
    ({ command }: { command: string }) => command === 'touch started; sleep 1000',
  )
  await waitUntil(
    'the agent terminated the command whose client was disconnected',
    async () => (await getCommand(terminated.id)).status === 'killed',
  )
  const ids = commands.map(({ id }: { id: string }) => id)
  t.equal(new Set(ids).size, ids.length)
})

t.test(
  'a box that is suspended or deleted after kill -9 of the coordinator keeps all its records',
  async (t) => {
    const runAndRestart = async (output: string) => {
      const results = [await exec(box.hostname, `echo ${output}`), await exec(box.hostname, 'exit 3')]
      // The reports are still on the box: it sends those of short commands together.
      await kill('SIGKILL')
      await start()
      return results.map(({ commandId }) => commandId)
    }

    const beforeSuspend = await runAndRestart('one')
    await sendJson('POST', `/api/v1/boxes/${box.id}/suspend`)
    await waitForState(box.id, 'suspended')
    for (const [index, id] of beforeSuspend.entries())
      t.match(await getCommand(id), { status: 'exited', exitCode: 3 * index })

    await sendJson('POST', `/api/v1/boxes/${box.id}/wake`)
    await waitForState(box.id, 'running')
    const beforeDelete = await runAndRestart('two')
    await sendJson('DELETE', `/api/v1/boxes/${box.id}`)
    await waitForState(box.id, 'terminated')
    for (const [index, id] of beforeDelete.entries())
      t.match(await getCommand(id), { status: 'exited', exitCode: 3 * index })
  },
)
