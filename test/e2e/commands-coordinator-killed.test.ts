// kill -9 of the coordinator while commands run: their records are complete afterwards, and each is there once.
import t from 'tap'
import { coordinatorProcess, eventually } from '../support/coordinator-process.ts'

t.test('records are made by the box, so nothing that ran meanwhile is missing', async (t) => {
  const coordinator = await coordinatorProcess(t)
  const { json, exec, start, end } = coordinator
  const box = await coordinator.firstBox()
  const history = `/api/v1/boxes/${box.id}/commands`
  const one = async (id: string) => (await json('GET', `${history}/${id}`)).command

  const short = await exec(box.hostname, 'echo short')
  const command =
    'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; done; sleep 1; echo end >&2; exit 9'
  const detached = await exec(box.hostname, command, { detached: true })
  const cut = exec(box.hostname, 'touch began; sleep 1000').catch((error) => error)
  await eventually('it began', async () => (await exec(box.hostname, 'test -e began')).exitCode === 0)
  await end('SIGKILL')
  t.type(await cut, Error)
  await start()

  await eventually('the record is complete', async () => (await one(detached.processId))?.status === 'exited')
  t.match(await one(detached.processId), { mode: 'detached', command, exitCode: 9, stderrBytes: 4 })
  const { data, done } = await json('GET', `${history}/${detached.processId}/output`)
  t.ok(done)
  t.equal(data, Array.from({ length: 3000 }, (_, i) => `line ${i + 1}\n`).join(''))
  t.match(await one(short.commandId), { status: 'exited', stdoutBytes: 6 }, 'what was answered is there')

  const { commands } = await json('GET', `${history}?limit=200`)
  const lost = commands.find((row: { command: string }) => row.command === 'touch began; sleep 1000')
  await eventually(
    'its agent ended what nobody waits for',
    async () => (await one(lost.id)).status === 'killed',
  )
  const ids = commands.map(({ id }: { id: string }) => id)
  t.equal(new Set(ids).size, ids.length)
})
