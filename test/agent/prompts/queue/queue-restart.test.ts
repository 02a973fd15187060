// Queued prompts over restarts and kills of the agent, with real processes.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { AgentPromptRequest } from '../../../../shared/api/prompts.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createHome } from '../../exec/detached/support.ts'
import { createPromptRequest } from '../prompts-support.ts'
import { openRealPrompts } from './real-prompts.ts'

/** The prompts that the coding agent has received, in order. */
const readStarts = (home: string): string[] =>
  existsSync(join(home, 'starts')) ? readFileSync(join(home, 'starts'), 'utf8').split('\n').slice(0, -1) : []

/** The fake coding agent waits for the file `go`. */
const createRequests = (): AgentPromptRequest[] =>
  Array.from({ length: 6 }, (_, index) =>
    createPromptRequest({ prompt: `prompt ${index}\n`, model: 'starts.sh', queue: index > 0 }),
  )

async function startAgent(t: Test, home: string) {
  // createHome() kills all processes with this HOME.
  const child = fork(join(import.meta.dirname, 'prompts-process.ts'), {
    env: { PATH: process.env.PATH ?? '', HOME: home },
    execArgv: [],
  })
  const answers = new Map<string, string>()
  child.on('message', (message: { runId: string; type: string }) => answers.set(message.runId, message.type))
  t.teardown(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return {
    answers,
    submit: (request: AgentPromptRequest) => void child.send(request),
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

t.test('prompts start in order, each one once, however often the agent is killed', async (t) => {
  const home = createHome(t)
  const requests = createRequests()
  let agent = await startAgent(t, home)
  for (const [index, request] of requests.entries()) {
    agent.submit(request)
    if (index % 2 === 0) {
      // Before, while or after the prompt is stored.
      await delay(index * 3)
      await agent.kill()
      agent = await startAgent(t, home)
    }
    agent.submit(request)
    await waitUntil('the repeated prompt is accepted', () => agent.answers.get(request.runId))
    t.match(agent.answers.get(request.runId), /^prompt\.(started|queued)$/)
  }
  t.same(readStarts(home), ['prompt 0'])
  writeFileSync(join(home, 'go'), '')
  for (const count of [2, 4]) {
    await waitUntil(`${count} prompts have started`, () => readStarts(home).length >= count)
    await agent.kill()
    agent = await startAgent(t, home)
  }
  await waitUntil('all prompts have started', () => readStarts(home).length >= requests.length)
  t.same(
    readStarts(home),
    requests.map((_, index) => `prompt ${index}`),
  )
  await agent.kill()
  const { prompts, close } = await openRealPrompts(t, home)
  const isDone = () => prompts.list(undefined).runs.every(({ status }) => status === 'done')
  await waitUntil('all runs are done', isDone)
  t.match(prompts.list(undefined).queued, [])
  const { runs } = prompts.list(undefined)
  t.same(
    runs.map(({ id }) => id),
    requests.map(({ runId }) => runId).reverse(),
  )
  t.same(
    runs.map(({ parent }) => parent),
    [...runs.slice(1).map(({ id }) => id), null],
  )
  t.match(prompts.listConversations().conversations, [{ prompts: 6, queued: 0, lastStatus: 'done' }])
  await close()
})

t.test('a session is resumed after a restart, and a failed start does not stop the queue', async (t) => {
  const home = createHome(t)
  const first = await openRealPrompts(t, home)
  const { newConversationId, runId } = createPromptRequest()
  await first.prompts.submit(createPromptRequest({ runId, newConversationId, model: 'wait.sh' }))
  const broken = createPromptRequest({ queue: true, new: true, cwd: '/nonexistent' })
  t.match(await first.prompts.submit(broken).catch((error: unknown) => error), { code: 'not_found' })
  const next = createPromptRequest({ queue: true, model: 'normal.sh' })
  t.match(await first.prompts.submit(next), { type: 'prompt.queued', conversationId: newConversationId })
  await waitUntil('the session is known', () => first.prompts.listConversations().conversations[0]?.sessionId)
  await first.close()
  const second = await openRealPrompts(t, home)
  t.match(second.prompts.list(undefined), { active: { id: runId }, queued: [{ id: next.runId }] })
  writeFileSync(join(home, 'go'), '')
  const options = { after: 0, limit: 100, waitMs: 15_000, signal: new AbortController().signal }
  await second.prompts.readEvents(next.runId, options)
  await waitUntil('the run is done', () => second.runs.get(next.runId).status === 'done')
  const { events } = await second.prompts.readEvents(next.runId, options)
  t.match(
    events.find(({ type }) => type === 'text'),
    { text: 'resumed s-1' },
  )
  t.match(second.runs.get(next.runId), { resumedFrom: 's-1', parent: runId })
  await second.close()
})

t.test('runs are interrupted while others wait in the queue', async (t) => {
  const home = createHome(t)
  const { prompts, close } = await openRealPrompts(t, home)
  const requests = createRequests()
  for (const request of requests) await prompts.submit(request)
  const [first, second] = requests
  t.match(await prompts.interrupt(first?.runId ?? ''), { wasRunning: true, signal: 'INT' })
  await waitUntil('the next one has started', () => readStarts(home).length === 2)
  t.match(await prompts.interruptAll(undefined), {
    id: second?.runId,
    wasRunning: true,
    interrupted: [{ id: second?.runId }],
    dequeued: requests.slice(2).map(({ runId }) => runId),
  })
  t.match(prompts.list(undefined), {
    active: null,
    queued: [],
    runs: [{ status: 'interrupted' }, { status: 'interrupted' }],
  })
  await close()
})
