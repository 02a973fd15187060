// Runs of coding agents in real boxes that are suspended: a stop interrupts them, a freeze does not, and a prompt wakes.
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { probeCgroups } from '../../coordinator/providers/local/cgroups.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { waitUntil } from '../support/wait-until.ts'

const { canFreeze } = await probeCgroups()

/** Appends its prompt to `starts`, prints a session, and succeeds as soon as the file `go` exists. */
const INSTALL_FAKE_CLAUDE = `
mkdir -p ~/.local/bin
cat >~/.local/bin/claude <<'EOF'
#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
cat >>"$HOME/starts"
echo '{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001"}'
while [ ! -e "$HOME/go" ]; do sleep 0.05; done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
EOF
chmod +x ~/.local/bin/claude`

async function startBox(t: Test, env: Record<string, string>) {
  const coordinator = await startTestCoordinator(t, { machines: 'local', env })
  const [{ id, hostname }] = (await coordinator.api('GET', '/boxes')).json.boxes
  await coordinator.waitForState(id, 'running')
  await coordinator.api('PATCH', `/boxes/${id}`, { env: { ANTHROPIC_API_KEY: 'test' } })
  const edge = async (method: string, path: string, body?: unknown) =>
    (await coordinator.edge(hostname, method, path, body)).json
  const exec = (command: string) => edge('POST', '/exec', { command })
  t.match(await exec(INSTALL_FAKE_CLAUDE), { exitCode: 0 })
  return {
    edge,
    exec,
    submit: (prompt: string, fields = {}) =>
      edge('POST', '/prompts', { provider: 'claude', prompt: `${prompt}\n`, ...fields }),
    readRun: async (runId: string) => (await edge('GET', `/prompts/${runId}`)).run,
    readStarts: async (): Promise<string> => (await exec('cat starts')).stdout,
    async suspend() {
      await coordinator.api('POST', `/boxes/${id}/suspend`)
      await coordinator.waitForState(id, 'suspended')
    },
  }
}

for (const isolation of ['auto', 'process'])
  t.test(`a suspend that stops the box interrupts its runs (isolation ${isolation})`, async (t) => {
    const env = { BOXWOOD_FREEZE_MINUTES: '0', BOXWOOD_LOCAL_ISOLATION: isolation }
    const { edge, exec, submit, readRun, readStarts, suspend } = await startBox(t, env)
    const { run } = await submit('one')
    const { queued } = await submit('two', { queue: true })
    t.match(queued, { position: 1, conversationId: run.conversationId })
    await waitUntil('the session is known', async () => (await readRun(run.id)).sessionId)
    await suspend()
    t.match(await edge('GET', `/prompts/${run.id}`), { error: { code: 'box_not_running' } })

    // The prompt wakes the box.
    const woken = await submit('three', { queue: true, conversationId: run.conversationId })
    t.match(woken, { type: 'prompt.queued', conversationId: run.conversationId })
    t.match(await readRun(run.id), { status: 'interrupted', error: /stop/, exitCode: null })
    await exec('touch go')
    const last = await waitUntil('the last run is done', async () => {
      const state = await readRun(woken.queued.id)
      return state?.status === 'done' && state
    })
    t.match(last, { parent: queued.id, resumedFrom: '5e551011-0000-4000-8000-000000000001' })
    t.match(await readRun(queued.id), { status: 'done', parent: run.id })
    t.equal(await readStarts(), 'one\ntwo\nthree\n')
  })

t.test('a run continues after a freeze', { skip: !canFreeze && 'no cgroup freezer' }, async (t) => {
  const { edge, exec, submit, readRun, suspend } = await startBox(t, {})
  const { run } = await submit('one')
  const { logPath } = await edge('GET', `/prompts/${run.id}`)
  const readDeadline = async (): Promise<number> => {
    const { stdout } = await exec(`cat '${join(dirname(logPath), 'meta.json')}'`)
    return JSON.parse(stdout).deadline
  }
  const deadline = await readDeadline()
  await suspend()
  const frozenAt = Date.now()
  await waitUntil('the box is frozen for three seconds', () => Date.now() - frozenAt > 3000)
  t.match(await submit('two'), { error: { code: 'prompt_in_progress', message: new RegExp(run.id) } })
  t.match(await readRun(run.id), { status: 'running', pid: run.pid })
  await waitUntil('the run has as much time as before', async () => (await readDeadline()) > deadline + 1000)
  await exec('touch go')
  await waitUntil('the run is done', async () => (await readRun(run.id)).status === 'done')
  t.match(await edge('GET', '/prompts/conversations'), {
    conversations: [{ prompts: 1, lastStatus: 'done' }],
  })
})
