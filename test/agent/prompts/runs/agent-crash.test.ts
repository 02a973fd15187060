// The agent is killed with SIGKILL at any time: nothing runs twice, no event is missing or doubled, the status is true.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { readRecord } from '../../../../agent/prompts/runs/run-record.ts'
import type { PromptEvent } from '../../../../shared/api/prompts.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createHome } from '../../exec/detached/support.ts'
import { isAlive, waitForPid } from '../../exec/support.ts'
import { startRunsProcess } from './runs-client.ts'
import { createRequest } from './support.ts'

t.test('events have no gap and no double', async (t) => {
  const home = createHome(t)
  const request = createRequest('count.sh')
  const { id } = request
  let agent = await startRunsProcess(t, home)
  await agent.start(request)
  const events: PromptEvent[] = []
  const getLast = () => events.at(-1)?.seq ?? 0
  for (let round = 0; round < 3; round++) {
    const target = getLast() + 50 + 140 * round
    while (getLast() < target) events.push(...(await agent.read(id, getLast())).events)
    // In the middle of requests.
    const requests = Promise.allSettled([agent.read(id, 0), agent.read(id, getLast())])
    await agent.kill()
    await requests
    agent = await startRunsProcess(t, home)
  }
  writeFileSync(join(home, 'go'), '')
  for (let finished = false; !finished; ) {
    const page = await agent.read(id, getLast())
    events.push(...page.events)
    finished = page.finished
  }
  t.match(await agent.get(id), { status: 'done', eventCount: events.length })
  t.same(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
  const texts = events.slice(1, -1).map(({ text }) => text)
  t.same(
    texts,
    texts.map((_, index) => String(index)),
  )
})

t.test('a start that is repeated after a kill starts the coding agent once', async (t) => {
  const home = createHome(t)
  const requests = Array.from({ length: 5 }, (_, index) => ({
    ...createRequest('starts.sh'),
    prompt: `prompt ${index}\n`,
  }))
  let agent = await startRunsProcess(t, home)
  for (const [index, request] of requests.entries()) {
    const started = agent.start(request).catch(() => null)
    // Before, during or after the start.
    await delay(index * 8)
    await agent.kill()
    await started
    agent = await startRunsProcess(t, home)
    t.match(await agent.start(request), { id: request.id, status: 'running' })
  }
  const readStarts = () =>
    existsSync(join(home, 'starts')) ? readFileSync(join(home, 'starts'), 'utf8') : ''
  await waitUntil('all have started', () => readStarts().split('\n').length > requests.length)
  t.same(
    readStarts().trim().split('\n').sort(),
    requests.map(({ prompt }) => prompt.trim()),
  )
})

t.test('an interrupt is completed', async (t) => {
  const home = createHome(t)
  const request = createRequest('tool.sh')
  const { id } = request
  const first = await startRunsProcess(t, home)
  await first.start(request)
  await first.read(id, 0)
  const tool = await waitForPid(home, 'tool')
  const interrupted = first.interrupt(id).catch(() => null)
  await waitUntil(
    'the request is recorded',
    () => readRecord(join(home, '.state/prompts/runs', id))?.interrupt != null,
  )
  await first.kill()
  await interrupted
  const second = await startRunsProcess(t, home)
  await waitUntil('the run has ended', async () => (await second.get(id))?.status === 'interrupted')
  t.notOk(isAlive(tool))
})
