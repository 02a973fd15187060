// The agent is killed with SIGKILL while processes run or start: every process survives and is started only once.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { execListSchema, execStartedSchema } from '../../../../shared/api/processes.ts'
import { newId } from '../../../../shared/ids.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { isAlive } from '../support.ts'
import { type AgentProcess, startAgentProcess } from './agent-process.ts'
import { createHome } from './support.ts'

const COUNT = 100

const readLines = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []

/** Each line is one write of less than a block with O_APPEND, so lines of different processes do not mix. */
const createStartRequest = (processId: string) => ({
  command: `echo "${processId} $$" >>starts; echo first; while [ ! -e go ]; do sleep 0.2; done; echo last; exit 9`,
  detached: true,
  processId,
})

const startAll = (agent: AgentProcess, ids: string[]) =>
  Promise.all(
    ids.map(async (id) =>
      execStartedSchema.parse((await agent.request('POST', '/exec', createStartRequest(id))).body),
    ),
  )

t.test('a hundred processes survive SIGKILL of the agent', async (t) => {
  const home = createHome(t)
  const ids = Array.from({ length: COUNT }, () => newId('process'))
  const first = await startAgentProcess(t, home)
  const started = await startAll(first, ids)
  await waitUntil('every process runs', () => readLines(join(home, 'starts')).length === COUNT)
  await first.kill()
  t.ok(started.every(({ pid }) => isAlive(pid)))

  const second = await startAgentProcess(t, home)
  t.same(await startAll(second, ids), started, 'repeated start requests get the same responses')
  const list = execListSchema.parse((await second.request('GET', '/exec')).body).processes
  t.equal(list.length, COUNT)
  t.ok(list.every(({ running, lost }) => running && !lost))
  t.same(
    readLines(join(home, 'starts')).sort(),
    started.map(({ processId, pid }) => `${processId} ${pid}`).sort(),
    'each process is started once',
  )

  // The processes exit while no agent runs.
  await second.kill()
  writeFileSync(join(home, 'go'), '')
  await waitUntil('every process has exited', () => !started.some(({ pid }) => isAlive(pid)))
  const third = await startAgentProcess(t, home)
  const exited = execListSchema.parse((await third.request('GET', '/exec')).body).processes
  t.ok(exited.every(({ running, lost, exitCode }) => !running && !lost && exitCode === 9))
  const { body } = await third.request('GET', `/exec/${ids[0]}`)
  t.match(body, { stdout: 'first\nlast\n' })
})

t.test('an agent that is killed during start requests starts no process twice', async (t) => {
  const home = createHome(t)
  const ids = Array.from({ length: COUNT }, () => newId('process'))
  let agent = await startAgentProcess(t, home)
  const confirmed = new Set<string>()
  for (let round = 0; round < 5; round++) {
    const pending = ids.filter((id) => !confirmed.has(id))
    const requests = pending.map((id) =>
      agent.request('POST', '/exec', createStartRequest(id)).then(
        ({ status }) => status === 200 && confirmed.add(id),
        // The response is lost, as it would be for the coordinator.
        () => undefined,
      ),
    )
    // Kill the agent after a different number of starts in each round.
    const target = Math.min(COUNT - 1, confirmed.size + 1 + round * 3)
    await waitUntil(`${target} processes run`, () => readLines(join(home, 'starts')).length >= target)
    await agent.kill()
    await Promise.all(requests)
    agent = await startAgentProcess(t, home)
  }
  const started = await startAll(agent, ids)
  await waitUntil('every process runs', () => readLines(join(home, 'starts')).length >= COUNT)
  t.same(
    readLines(join(home, 'starts')).sort(),
    started.map(({ processId, pid }) => `${processId} ${pid}`).sort(),
    'each process is started once and has the pid in the response',
  )
  const list = execListSchema.parse((await agent.request('GET', '/exec')).body).processes
  t.ok(list.length === COUNT && list.every(({ running }) => running))
})
