// Prompts on the agent process: they survive a restart of the agent, and a stop of the box interrupts them truthfully.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { JsonMethod } from '../../../agent/requests/json-routes.ts'
import { startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { createHome } from '../exec/detached/support.ts'
import { createPromptRequest } from './prompts-support.ts'

const MiB = 1024 * 1024
const MAIN = join(import.meta.dirname, '../../../agent/main.ts')

/** Appends its prompt to `starts`, prints a session, and succeeds as soon as the file `go` exists. */
const FAKE_CLAUDE = `#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
cat >>"$HOME/starts"
echo '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001"}'
while [ ! -e "$HOME/go" ]; do sleep 0.02; done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
`

/** A home directory with the fake CLI on the PATH, also on that of login shells. */
function createBoxHome(t: Test): string {
  const home = createHome(t)
  const bin = join(home, '.local/bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'claude'), FAKE_CLAUDE, { mode: 0o755 })
  writeFileSync(join(home, '.profile'), 'PATH=$HOME/.local/bin:$PATH\n')
  mkdirSync(join(home, '.state'))
  return home
}

async function startAgent(t: Test, home: string, settings: Record<string, string> = {}) {
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const { boxId, token } = coordinator.addBox()
  writeFileSync(join(home, '.state/token'), token)
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: `${join(home, '.local/bin')}:${process.env.PATH}`,
      HOME: home,
      BOXWOOD_HOME: home,
      BOXWOOD_URL: coordinator.url,
      BOXWOOD_BOX: boxId,
      BOXWOOD_STATE: join(home, '.state'),
      ...settings,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  t.teardown(() => child.kill('SIGKILL'))
  const exit = once(child, 'exit')
  const exited = exit.then(() => Promise.reject(new Error(stderr)))
  exited.catch(() => undefined)
  const tunnel = await Promise.race([coordinator.tunnels.wait(boxId, DEADLINE_MS), exited])
  const send = async (method: JsonMethod, path: string, body?: unknown) => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await tunnel.call({
      method,
      path,
      ...content,
      timeoutMs: DEADLINE_MS,
      maxBytes: () => MiB,
    })
    const text = response.body.toString()
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }
  const submit = async (fields: Parameters<typeof createPromptRequest>[0]) => {
    const request = createPromptRequest({ boxEnv: { ANTHROPIC_API_KEY: 'test' }, ...fields })
    const { body } = await send('POST', '/prompts', request)
    return { ...body, runId: request.runId }
  }
  const readRun = async (runId: string) => (await send('GET', `/prompts/${runId}`)).body.run
  const waitForStatus = (runId: string, status: string) =>
    waitUntil(`the run is ${status}`, async () => (await readRun(runId))?.status === status)
  return { child, exit, send, submit, readRun, waitForStatus, getLog: () => stderr }
}

const readStarts = (home: string): string =>
  existsSync(join(home, 'starts')) ? readFileSync(join(home, 'starts'), 'utf8') : ''

t.test('runs and queued prompts survive restarts and kills of the agent', async (t) => {
  const home = createBoxHome(t)
  const first = await startAgent(t, home)
  const { runId, run } = await first.submit({ prompt: 'one\n' })
  t.match(run, { status: 'running', pid: Number })
  const queued = await first.submit({ prompt: 'two\n', queue: true })
  t.match(queued, { type: 'prompt.queued', active: { id: runId } })
  t.same((await first.send('GET', '/exec')).body.processes, [], 'a run is no command')
  await waitUntil('a second has passed', () => Date.now() > Date.parse(run.startedAt) + 1500)
  t.same((await first.send('GET', '/activity')).body, { idleForSec: 0 }, 'a run keeps the box active')
  t.equal((await first.send('POST', '/restart')).status, 204)
  t.same(await first.exit, [0, null])

  const second = await startAgent(t, home)
  t.match(await second.readRun(runId), { status: 'running', pid: run.pid })
  second.child.kill('SIGKILL')
  await second.exit

  const third = await startAgent(t, home)
  t.match(await third.readRun(runId), { status: 'running', pid: run.pid })
  t.equal(readStarts(home), 'one\n')
  writeFileSync(join(home, 'go'), '')
  await third.waitForStatus(runId, 'done')
  await waitUntil('the queued prompt has started', async () => (await third.readRun(queued.runId)) ?? false)
  await third.waitForStatus(queued.runId, 'done')
  t.equal(readStarts(home), 'one\ntwo\n')
  t.match(await third.readRun(queued.runId), {
    parent: runId,
    resumedFrom: '5e551011-0000-4000-8000-000000000001',
  })
  t.notMatch(third.getLog(), /one|two/, 'the log has no prompt')
})

t.test('a box that stops interrupts its runs, and starts queued prompts when it wakes', async (t) => {
  const home = createBoxHome(t)
  const first = await startAgent(t, home)
  const { runId, run } = await first.submit({ prompt: 'one\n' })
  const queued = await first.submit({ prompt: 'two\n', queue: true })
  await waitUntil('the coding agent runs', () => readStarts(home) === 'one\n')
  // As the init of a box does.
  process.kill(run.pid, 'SIGTERM')
  first.child.kill('SIGTERM')
  t.same(await first.exit, [0, null])

  const second = await startAgent(t, home)
  t.match(await second.readRun(runId), { status: 'interrupted', error: /stop/ })
  await waitUntil('the queued prompt has started', () => readStarts(home) === 'one\ntwo\n')
  writeFileSync(join(home, 'go'), '')
  await second.waitForStatus(queued.runId, 'done')
})

t.test('the settings limit runs and the queue', async (t) => {
  const home = createBoxHome(t)
  const settings = { BOXWOOD_PROMPT_RUNS: '1', BOXWOOD_PROMPT_QUEUE: '1', BOXWOOD_PROMPT_CONVERSATIONS: '1' }
  const { submit, send } = await startAgent(t, home, settings)
  t.match(await submit({}), { type: 'prompt.started' })
  t.match(await submit({ new: true }), { error: { code: 'prompt_limit_reached' } })
  t.match(await submit({ queue: true }), { type: 'prompt.queued' })
  t.match(await submit({ queue: true }), { error: { code: 'prompt_limit_reached' } })
  t.match(await send('POST', '/prompts/interrupt'), { body: { interrupted: [{}], dequeued: [String] } })
})
