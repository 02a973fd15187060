// Prompts with the real coding agents on a real box, over HTTP, with a fake model server: conversations, restarts of the agent,
// interrupts and the queue.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { PromptEvent, Run } from '../../shared/api/prompts.ts'
import { createCliHome } from '../support/coding-agents/create-cli-home.ts'
import { installCodingAgents } from '../support/coding-agents/install-coding-agents.ts'
import { listBoxPids } from '../support/find-agent-process.ts'
import { userTexts } from '../support/model-server/model-request.ts'
import { startModelServer } from '../support/model-server/model-server.ts'
import { holdStream, text, toolCall } from '../support/model-server/replies.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

const agents = await installCodingAgents()

/** A tool call that waits, and the name of its program, by coding agent. */
const WAIT = "python3 -c \"import time; open('in-tool', 'w'); time.sleep(600)\""
const WAITING_TOOLS = {
  claude: toolCall('Bash', { command: WAIT, description: 'waits' }),
  codex: toolCall('exec_command', { cmd: WAIT }),
  opencode: toolCall('bash', { command: WAIT, description: 'waits' }),
  pi: toolCall('bash', { command: WAIT }),
} as const
type TestedProvider = keyof typeof WAITING_TOOLS

/** A box of the level `process` runs as a user of its own, which has to read the programs. */
function findUnreadableDirectory(): string | undefined {
  for (let dir = PROJECT_DIR; dir !== '/'; dir = dirname(dir)) {
    try {
      accessSync(dir, constants.X_OK)
    } catch {
      return dir
    }
  }
  return undefined
}

async function startPromptBox(t: Test, provider: TestedProvider) {
  const models = await startModelServer(t)
  const { home, env, model } = createCliHome(t, provider, models)
  const box = await startCoordinatorWithBox(t, {
    env: {
      BOXWOOD_LOCAL_ISOLATION: 'process',
      BOXWOOD_LOCAL_NETWORK: 'host',
      BOXWOOD_EDGE_RATE: '10000',
      BOXWOOD_EDGE_CONCURRENCY: '1000',
    },
  })
  // The configuration of the coding agent, and the programs on the PATH of the box.
  const { HOME: _home, TMPDIR: _tmp, ...variables } = env
  await box.api('PATCH', `/boxes/${box.box.id}`, { env: variables })
  const setUp = await box.exec(
    `mkdir -p .local/bin .codex .config/opencode .pi/agent project && ln -s ${agents.binDir}/${provider} ${process.execPath} .local/bin && ${provider} --version`,
    { timeoutSeconds: 60 },
  )
  if (setUp.exitCode !== 0) throw new Error(`${provider} does not run on the box: ${setUp.stderr}`)

  for (const path of ['.codex/config.toml', '.config/opencode/opencode.json', '.pi/agent/models.json']) {
    const file = join(home, path)
    if (!existsSync(file)) continue
    const { status } = await box.boxRequest('PUT', '/files', { path, content: readFileSync(file, 'utf8') })
    if (status !== 200) throw new Error(`${path}: ${status}`)
  }

  const prompt = async (prompt: string, fields: object = {}) => {
    const body = {
      provider,
      prompt,
      model,
      cwd: 'project',
      ...(provider !== 'pi' && { auto: true }),
      ...fields,
    }
    const { status, json } = await box.boxRequest('POST', '/prompts', body)
    if (status !== 202) throw new Error(`${status} ${JSON.stringify(json)}`)
    return json
  }
  const waitForRun = (id: string): Promise<Run> =>
    waitUntil(`the run ${id} has ended`, async () => {
      const { status, json } = await box.boxRequest('GET', `/prompts/${id}`)
      return status === 200 && json.run.status !== 'running' ? json.run : undefined
    })
  const readEvents = async (id: string): Promise<PromptEvent[]> =>
    (await box.boxRequest('GET', `/prompts/${id}/events?limit=1000`)).json.events
  const readText = async (id: string) =>
    (await readEvents(id)).flatMap(({ type, text }) => (type === 'text' ? [text] : [])).join('')
  return { ...box, models, model, prompt, waitForRun, readEvents, readText }
}

/** kill -9 of the agent. The coding agent continues. */
async function killAgent({ box, boxRequest }: Awaited<ReturnType<typeof startPromptBox>>): Promise<void> {
  const isAgent = (pid: number) => {
    try {
      return /agent\/main|agent\.(m?js)|\/agent-/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    } catch {
      return false
    }
  }
  const pid = listBoxPids(box.id).find(isAgent)
  if (pid === undefined) throw new Error('the agent does not run')
  process.kill(pid, 'SIGKILL')
  await waitUntil('the next agent responds', async () => {
    const { status } = await boxRequest('GET', '/prompts')
    return status === 200 && !listBoxPids(box.id).includes(pid)
  })
}

const unreadable = findUnreadableDirectory()
const skip = agents.skip || (unreadable !== undefined && `the box cannot read ${unreadable}`)

for (const provider of ['claude', 'codex', 'opencode', 'pi'] as const) {
  t.test(provider, { skip }, async (t) => {
    const box = await startPromptBox(t, provider)
    const { models, prompt, waitForRun, readEvents, readText, boxRequest } = box

    await t.test('a killed agent: the run continues, and its events have no gap and no double', async (t) => {
      const held = holdStream('first half, ')
      models.reply(held.reply)
      const { run } = await prompt('question one')
      await held.started
      await killAgent(box)
      held.release('second half')
      const ended = await waitForRun(run.id)
      t.match(ended, { status: 'done', error: null, exitCode: 0 })
      const events = await readEvents(run.id)
      t.strictSame(
        events.map(({ seq }) => seq),
        Array.from(events, (_, index) => index + 1),
      )
      t.equal(ended.eventCount, events.length)
      t.equal(await readText(run.id), 'first half, second half')
    })

    await t.test('continue resumes the session, with the history', async (t) => {
      models.reply(text('again'))
      const { run } = await prompt('question two', { continue: true, cwd: undefined })
      const ended = await waitForRun(run.id)
      t.match(ended, { status: 'done', resumedFrom: ended.sessionId ?? '' })
      t.ok(run.parent)
      const texts = models.scripted.slice(-1).flatMap(userTexts).join('\n')
      t.match(texts, /question one.*question two/s)
    })

    await t.test('an interrupt inside a tool leaves no process', async (t) => {
      models.reply(WAITING_TOOLS[provider])
      const before = listBoxPids(box.box.id).length
      const { run } = await prompt('question three', { new: true })
      await waitUntil('the tool runs', async () => (await box.exec('test -e project/in-tool')).exitCode === 0)
      const { json } = await boxRequest('POST', `/prompts/${run.id}/interrupt`)
      t.match(json, { type: 'prompt.interrupted', id: run.id, wasRunning: true })
      t.match(await waitForRun(run.id), { status: 'interrupted' })
      await waitUntil('the processes of the run have exited', () => listBoxPids(box.box.id).length <= before)
    })

    await t.test('three runs at once', async (t) => {
      for (const n of [1, 2, 3]) models.replyTo(`parallel ${n}`, text(`result ${n}`))
      const started = await Promise.all([1, 2, 3].map((n) => prompt(`parallel ${n}`, { new: true })))
      const results = []
      for (const { run } of started) {
        t.match(await waitForRun(run.id), { status: 'done' })
        results.push(await readText(run.id))
      }
      t.strictSame(results, ['result 1', 'result 2', 'result 3'])
    })

    await t.test('a queue of five runs in order', async (t) => {
      const held = holdStream('')
      models.reply(held.reply, ...[1, 2, 3, 4, 5].map((n) => text(`answer ${n}`)))
      const { run } = await prompt('question zero', { new: true })
      await held.started
      const queued = []
      for (const n of [1, 2, 3, 4, 5])
        queued.push(await prompt(`queued ${n}`, { queue: true, cwd: undefined }))
      t.strictSame(
        queued.map(({ type, conversationId }) => `${type} ${conversationId}`),
        queued.map(() => `prompt.queued ${run.conversationId}`),
      )
      const refused = await boxRequest('POST', '/prompts', { provider, prompt: 'not queued' })
      t.match(refused, { status: 409, json: { error: { code: 'prompt_in_progress' } } })
      held.release('zero')
      const answers = []
      for (const { queued: entry } of queued) {
        t.match(await waitForRun(entry.id), { status: 'done' })
        answers.push(await readText(entry.id))
      }
      t.strictSame(answers, ['answer 1', 'answer 2', 'answer 3', 'answer 4', 'answer 5'])
      t.match(
        models.scripted.slice(-1).flatMap(userTexts).join('\n'),
        /question zero.*queued 1.*queued 2.*queued 3.*queued 4.*queued 5/s,
      )
    })
  })
}
