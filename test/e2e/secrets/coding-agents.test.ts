// Prompts to the real coding agents with API keys that the box does not have: the box is ready, and the models receive the keys.
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { PromptEvent, ProviderName, Run } from '../../../shared/api/prompts.ts'
import { CODING_AGENTS_DIR, installCodingAgents } from '../../support/coding-agents/install-coding-agents.ts'
import { toolResults, userTexts } from '../../support/model-server/model-request.ts'
import { startModelServer } from '../../support/model-server/model-server.ts'
import { type Reply, text, toolCall } from '../../support/model-server/replies.ts'
import { findPrivateDirectory } from '../../support/private-directory.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { mountSecrets, startBoxWithSecrets } from './box-with-secrets.ts'
import { HOSTS, startToolServers } from './tool-servers.ts'

type TestedAgent = {
  provider: ProviderName
  model: string
  host: string
  variable: string
  runCommand(command: string): Reply
  /** pi runs all tools, and refuses the field `auto`. */
  fields: object
  /** The header with the key. */
  header(value: string): string
}

const bearer = (value: string): string => `Bearer ${value}`
const AUTO = { auto: true }
const OPENAI = { host: HOSTS.openai, variable: 'OPENAI_API_KEY', header: bearer }
const ANTHROPIC = { host: HOSTS.anthropic, variable: 'ANTHROPIC_API_KEY', header: (value: string) => value }

const AGENTS: readonly TestedAgent[] = [
  {
    ...{ provider: 'claude', model: 'claude-sonnet-5-5', ...ANTHROPIC, fields: AUTO },
    runCommand: (command) => toolCall('Bash', { command, description: 'test' }),
  },
  {
    ...{ provider: 'codex', model: 'gpt-5.1-codex', ...OPENAI, fields: AUTO },
    runCommand: (cmd) => toolCall('exec_command', { cmd }),
  },
  {
    ...{ provider: 'opencode', model: 'openai/gpt-5.1', ...OPENAI, fields: AUTO },
    runCommand: (command) => toolCall('bash', { command, description: 'test' }),
  },
  {
    ...{ provider: 'pi', model: 'anthropic/claude-sonnet-4-5', ...ANTHROPIC, fields: {} },
    runCommand: (command) => toolCall('bash', { command }),
  },
]

const POLL_MS = 250

const agents = await installCodingAgents()

function findSkipReason(): string | false {
  if (agents.skip) return agents.skip
  const dir = [CODING_AGENTS_DIR, process.execPath]
    .map(findPrivateDirectory)
    .find((found) => found !== undefined)
  return dir === undefined ? false : `other users cannot read ${dir}`
}

t.test('coding agents', { skip: findSkipReason() }, async (t) => {
  const models = await startModelServer(t, { acceptsWebSockets: true })
  const servers = await startToolServers(t, models.url)
  const coordinator = await startBoxWithSecrets(t, servers, {
    BOXWOOD_LOCAL_ISOLATION: 'process',
    BOXWOOD_LOCAL_NETWORK: 'host',
  })
  const { box, api, exec, boxRequest } = coordinator
  const programs = AGENTS.map(({ provider }) => join(agents.binDir, provider)).join(' ')
  const linked = await exec(`mkdir -p .local/bin project && ln -s ${programs} ${process.execPath} .local/bin`)
  t.match(linked, { exitCode: 0 })
  const readReadiness = async () => (await api('GET', `/boxes/${box.id}`)).json.vitals?.coding_agents
  await waitUntil('the coding agents are found', async () =>
    Object.values((await readReadiness()) ?? {}).includes('not_signed_in'),
  )
  const secrets = await mountSecrets(coordinator, box.id, {
    ANTHROPIC_API_KEY: [HOSTS.anthropic],
    OPENAI_API_KEY: [HOSTS.openai],
  })
  const values = Object.values(secrets).map(({ value }) => value)
  await waitUntil('all are ready with the placeholders', async () => {
    const readiness = await readReadiness()
    return AGENTS.every(({ provider }) => readiness[provider] === 'ready')
  })

  for (const { provider, model, host, variable, runCommand, fields, header } of AGENTS)
    await t.test(provider, async (t) => {
      servers.requests.length = 0
      const question = `question for ${provider}`
      models.replyTo(question, runCommand('env'), text(`answer of ${provider}`))
      const prompt = { provider, model, prompt: question, cwd: 'project', new: true, ...fields }
      const { status, json } = await boxRequest('POST', '/prompts', prompt)
      t.equal(status, 202, JSON.stringify(json))
      const { id } = json.run
      const run: Run = await waitUntil(
        'the run has ended',
        async () => {
          const { json } = await boxRequest('GET', `/prompts/${id}`)
          if (json.run.status !== 'running') return json.run
          await delay(POLL_MS)
        },
        LONG_DEADLINE_MS,
      )
      const events: PromptEvent[] = (await boxRequest('GET', `/prompts/${id}/events?limit=1000`)).json.events
      t.match(run, { status: 'done', error: null }, JSON.stringify(events))
      t.match(JSON.stringify(events), `answer of ${provider}`)
      const key = header(secrets[variable]?.value ?? '')
      t.ok(servers.credentials(host).includes(key), 'the models receive the key')
      t.same(new Set(servers.credentials(host)), new Set([key]), 'and no placeholder')
      const history = models.requests.filter((request) => userTexts(request).join().includes(question))
      t.match(
        history.flatMap(toolResults).join('\n'),
        /dcpsec_[0-9a-z]{32}/,
        'the environment has the placeholders',
      )
      const readable = JSON.stringify([events, history.map(({ body }) => body)])
      for (const value of values) t.notOk(readable.includes(value), 'the coding agent never sees the value')
    })
})
