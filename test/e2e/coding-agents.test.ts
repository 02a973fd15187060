// Coding agents of a real box: which of them are ready, and the installation of one that is missing.
import t, { type Test } from 'tap'
import { startTestCoordinator } from '../support/coordinator.ts'
import { waitUntil } from '../support/wait-until.ts'

async function startBox(t: Test) {
  const coordinator = await startTestCoordinator(t, {
    machines: 'local',
    env: { BOXWOOD_FREEZE_MINUTES: '0' },
  })
  const { api } = coordinator
  const [{ id, hostname }] = (await api('GET', '/boxes')).json.boxes
  await coordinator.waitForState(id, 'running')
  const edge = (method: string, path: string, body?: unknown) =>
    coordinator.edge(hostname, method, path, body)
  const exec = async (command: string) => {
    const response = await edge('POST', '/exec', { command })
    t.match(response.json, { exitCode: 0 }, command)
  }
  return {
    ...{ edge, exec },
    setEnv: (variables: Record<string, string>) => api('PATCH', `/boxes/${id}`, { env: variables }),
    waitForReadiness: (name: string, readiness: string) =>
      waitUntil(`${name} is ${readiness}`, async () => {
        const { vitals } = (await api('GET', `/boxes/${id}`)).json
        return vitals?.coding_agents?.[name] === readiness
      }),
    async restart() {
      await api('POST', `/boxes/${id}/suspend`)
      await coordinator.waitForState(id, 'suspended')
      await api('POST', `/boxes/${id}/wake`)
      await coordinator.waitForState(id, 'running')
    },
  }
}

const install = (name: string, script: string, dir = '.local/bin') =>
  `mkdir -p ~/${dir} && cat >~/${dir}/${name} <<'EOF'\n#!/bin/sh\n${script}\nEOF\nchmod +x ~/${dir}/${name}`

const box = await startBox(t)

t.test('the readiness counts the variables of the box and its files, without a prompt', async () => {
  const { exec, setEnv, waitForReadiness, restart } = box
  await exec(install('claude', "echo '2.1.329 (Claude Code)'"))
  await setEnv({ OTHER: 'x' })
  await waitForReadiness('claude', 'not_signed_in')
  await setEnv({ ANTHROPIC_API_KEY: 'test' })
  await waitForReadiness('claude', 'ready')
  await setEnv({})
  await waitForReadiness('claude', 'not_signed_in')
  await exec(
    `mkdir -p ~/.claude && echo '{"claudeAiOauth":{"accessToken":"x"}}' >~/.claude/.credentials.json`,
  )
  await waitForReadiness('claude', 'ready')
  await exec('rm ~/.claude/.credentials.json')
  await waitForReadiness('claude', 'not_signed_in')

  await setEnv({ CLAUDE_CODE_OAUTH_TOKEN: 'test' })
  await waitForReadiness('claude', 'ready')
  await restart()
  await waitForReadiness('claude', 'ready')
  await waitForReadiness('codex', 'not_installed')
})

t.test('an installation is interrupted, fails, and succeeds', async (t) => {
  const { edge, exec, setEnv } = box
  await setEnv({ ANTHROPIC_API_KEY: 'test' })
  const npm = `[ "$1" = prefix ] && { echo /nonexistent; exit; }
touch ~/installing
while [ ! -e ~/status ]; do sleep 0.05; done
read status <~/status
[ "$status" = 0 ] || { echo 'npm error E404 not found' >&2; exit "$status"; }
mkdir -p ~/.local/bin
cp ~/fake-pi ~/.local/bin/pi`
  await exec(install('npm', npm, 'fake'))
  await exec(
    install('fake-pi', `[ "$1" = --version ] && { echo 1.2.3; exit; }\necho '{"type":"agent_settled"}'`, '.'),
  )
  await exec(`printf '%s\\n' 'PATH=$HOME/fake:$PATH' 'export PATH' >>~/.profile`)
  const submit = () => edge('POST', '/prompts', { provider: 'pi', prompt: 'Hello' })

  const pending = submit()
  await waitUntil('npm installs', async () => (await edge('GET', '/files?path=installing')).status === 200)
  const { json: conversations } = await edge('GET', '/prompts/conversations')
  t.match(conversations, { running: 1, conversations: [{ running: true, provider: 'pi' }] })
  t.match(await submit(), { status: 409, json: { error: { code: 'prompt_in_progress' } } })
  const interrupted = (await edge('POST', '/prompts/interrupt')).json
  t.match(interrupted, { wasRunning: true, signal: null, interrupted: [{ signal: null }] })
  const error = 'The run was interrupted by a request.'
  t.match(await pending, {
    status: 202,
    json: { type: 'prompt.started', run: { id: interrupted.id, status: 'interrupted', error, pid: null } },
  })
  t.match((await edge('GET', `/prompts/${interrupted.id}/events`)).json, { events: [], finished: true })

  // The installation has continued, and the next prompt waits for it.
  const failing = submit()
  await exec('echo 7 >~/status')
  t.match(await failing, {
    status: 409,
    json: {
      error: { code: 'provider_not_installed', message: /exit status 7: E404 not found\.$/ },
    },
  })
  await exec('echo 0 >~/status')
  const { status, json } = await submit()
  t.match({ status, json }, { status: 202, json: { run: { status: 'running', auto: true } } })
  await waitUntil('the run is done', async () => {
    const { run } = (await edge('GET', `/prompts/${json.run.id}`)).json
    return run.status === 'done'
  })

  const response = await edge('GET', '/prompts/interrupt')
  t.match(response, { status: 405, json: { error: { code: 'method_not_allowed' } } })
  t.equal(response.headers.get('allow'), 'POST')
})
