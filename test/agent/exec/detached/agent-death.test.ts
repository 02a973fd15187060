// kill -9 of the agent, with a hundred processes and in the middle of starting them: none is lost, none runs twice.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { execList, execStarted } from '../../../../shared/api/processes.ts'
import { newId } from '../../../../shared/ids.ts'
import { isAlive, waitUntil } from '../exec-app.ts'
import { startRealAgent } from './real-agent.ts'
import { newHome } from './support.ts'

const COUNT = 100

const linesOf = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []

/** One writes what is less than a block with O_APPEND, so no two of them mix. */
const requestFor = (processId: string) => ({
  command: `echo "${processId} $$" >>starts; echo begun; while [ ! -e go ]; do sleep 0.2; done; echo ended; exit 9`,
  detached: true,
  processId,
})

t.test('a hundred of them', async (t) => {
  const home = newHome(t)
  const ids = Array.from({ length: COUNT }, () => newId('process'))
  const first = await startRealAgent(t, home)
  const started = await Promise.all(
    ids.map(async (id) => execStarted.parse((await first.ask('POST', '/exec', requestFor(id))).body)),
  )
  await waitUntil('all of them began', () => linesOf(join(home, 'starts')).length === COUNT)
  await first.kill()
  t.ok(started.every(({ pid }) => isAlive(pid)))

  const second = await startRealAgent(t, home)
  const again = await Promise.all(
    ids.map(async (id) => execStarted.parse((await second.ask('POST', '/exec', requestFor(id))).body)),
  )
  t.same(again, started, 'the same answers')
  const list = execList.parse((await second.ask('GET', '/exec')).body).processes
  t.equal(list.length, COUNT)
  t.ok(list.every(({ running, lost }) => running && !lost))
  t.same(
    linesOf(join(home, 'starts')).sort(),
    started.map(({ processId, pid }) => `${processId} ${pid}`).sort(),
    'each of them once',
  )

  // Their ends come while no agent is there.
  await second.kill()
  writeFileSync(join(home, 'go'), '')
  await waitUntil('all of them ended', () => !started.some(({ pid }) => isAlive(pid)))
  const third = await startRealAgent(t, home)
  const all = async () => execList.parse((await third.ask('GET', '/exec')).body).processes
  t.ok((await all()).every(({ running, lost, exitCode }) => !running && !lost && exitCode === 9))
  const { body } = await third.ask('GET', `/exec/${ids[0]}`)
  t.match(body, { stdout: 'begun\nended\n' })
})

t.test('killed while it starts them, and asked again', async (t) => {
  const home = newHome(t)
  const ids = Array.from({ length: COUNT }, () => newId('process'))
  let agent = await startRealAgent(t, home)
  const done = new Set<string>()
  for (let round = 0; round < 5; round++) {
    const left = ids.filter((id) => !done.has(id))
    const asked = left.map((id) =>
      agent.ask('POST', '/exec', requestFor(id)).then(
        ({ status }) => status === 200 && done.add(id),
        // Its answer was lost, as the coordinator would see it.
        () => undefined,
      ),
    )
    // Somewhere between the first and the last, elsewhere each time.
    const target = Math.min(COUNT - 1, done.size + 1 + round * 3)
    await waitUntil('some have begun', () => linesOf(join(home, 'starts')).length >= target)
    await agent.kill()
    await Promise.all(asked)
    agent = await startRealAgent(t, home)
  }
  const answers = await Promise.all(
    ids.map(async (id) => execStarted.parse((await agent.ask('POST', '/exec', requestFor(id))).body)),
  )
  await waitUntil('all of them began', () => linesOf(join(home, 'starts')).length >= COUNT)
  t.same(
    linesOf(join(home, 'starts')).sort(),
    answers.map(({ processId, pid }) => `${processId} ${pid}`).sort(),
    'each of them once, and it is the one that is told',
  )
  const list = execList.parse((await agent.ask('GET', '/exec')).body).processes
  t.ok(list.length === COUNT && list.every(({ running }) => running))
})
