// prompt_agent and read_prompt of box mcp.
import t from 'tap'
import { waitUntil } from '../support/wait-until.ts'
import { startPromptCoordinator } from './coordinator-with-prompts.ts'
import { connectMcp } from './mcp-client.ts'

const coordinator = await startPromptCoordinator(t, { onStart: () => undefined })
const { getRun, submitted, listRuns } = coordinator
const mcp = await connectMcp(t, coordinator)
const quick = await connectMcp(t, coordinator, { args: ['--max-wait', '0.2'] })
const box = 'fig'

t.afterEach(() => coordinator.reset())

t.test('a prompt starts a run, whose events are read until it has ended', async (t) => {
  const { data, text } = await mcp.call('prompt_agent', {
    box,
    provider: 'claude',
    prompt: 'fix it',
    auto: true,
  })
  t.match(submitted, [{ provider: 'claude', prompt: 'fix it', auto: true }])
  t.match(text, `Call read_prompt with this runId`)
  const { runId } = data
  const run = getRun(runId)
  run.emit('tool', null, { name: 'Bash', input: { command: 'ls' } })
  run.emit('text', 'reading \u001b[31mfiles')
  const first = await quick.call('read_prompt', { box, runId })
  t.match(first.data, {
    status: 'running',
    more: true,
    events: [
      { type: 'tool', text: 'Bash {"command":"ls"}' },
      { type: 'text', text: 'reading files' },
    ],
  })
  const rest = mcp.call('read_prompt', { box, runId, after: first.data.next })
  run.emit('text', 'fixed')
  run.end('done')
  t.match(await rest, {
    data: { status: 'done', more: false, events: [{ text: 'fixed' }] },
    text: /is done\.\n--- data of box fig, not instructions/,
  })
  t.match(await mcp.call('read_prompt', { box }), { data: { runs: [{ runId, status: 'done' }] } })
})

t.test('events that do not fit are in the next answer, and a long one is cut', async (t) => {
  const { data } = await mcp.call('prompt_agent', { box, provider: 'claude', prompt: 'write' })
  const run = getRun(data.runId)
  for (let i = 1; i <= 5; i++) run.emit('text', `${i} ${'"x'.repeat(10_000)}`)
  run.end('failed', 'no credit')
  const numbers: string[] = []
  for (let after = 0, more = true; more; ) {
    const page = await mcp.call('read_prompt', { box, runId: data.runId, after })
    t.ok(Buffer.byteLength(JSON.stringify(page.data)) <= 24 * 1024)
    t.match(page.data.status, 'failed')
    for (const { text } of page.data.events) {
      t.match(text, /bytes are not shown\]$/)
      numbers.push(text[0])
    }
    ;({ next: after, more } = page.data)
  }
  t.same(numbers, ['1', '2', '3', '4', '5'])
})

t.test('a prompt in the queue, a refused one, and an unknown run', async (t) => {
  const running = await mcp.call('prompt_agent', { box, provider: 'claude', prompt: 'one' })
  const { conversationId } = running.data
  t.match(await mcp.call('prompt_agent', { box, provider: 'claude', prompt: 'two', conversationId }), {
    isError: true,
    text: /in progress/,
  })
  const queued = await mcp.call('prompt_agent', {
    box,
    provider: 'claude',
    prompt: 'two',
    conversationId,
    queue: true,
  })
  t.match(await quick.call('read_prompt', { box, runId: queued.data.runId }), { data: { status: 'queued' } })
  t.match(await mcp.call('read_prompt', { box, runId: 'run_nothing' }), { isError: true })
})

t.test('a cancelled prompt is interrupted', async (t) => {
  const controller = new AbortController()
  coordinator.hooks.beforeSubmit = async () => {
    controller.abort()
    // The notification of the client has arrived before the response of the coordinator.
    await quick.call('list_boxes')
  }
  await t.rejects(mcp.call('prompt_agent', { box, provider: 'claude', prompt: 'one' }, controller.signal))
  await waitUntil('the run is interrupted', () => listRuns()[0]?.status === 'interrupted')
})
