// POST /mcp with the official client, a coordinator and a real box.
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t, { type Test } from 'tap'
import { connectMcpOverHttp } from '../cli/mcp-client.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

const coordinator = await startCoordinatorWithBox(t, {
  env: {
    ...limitsEnv(HIGH_EDGE_LIMITS),
    BOXWOOD_MCP: 'on',
    // Not reached from this machine: the tools use the address at which the coordinator listens.
    BOXWOOD_PUBLIC_URL: 'https://boxes.invalid/boxwood',
  },
})
const { url, key, boxRequest } = coordinator
const box = coordinator.box.hostname

const connect = async (t: Test, era: 'modern' | 'legacy', apiKey = key) =>
  (await connectMcpOverHttp(t, { url, key: apiKey }, { era })).client

const post = (headers: Record<string, string>) =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  })

t.test('both revisions are served', async (t) => {
  for (const era of ['modern', 'legacy'] as const) {
    const client = await connect(t, era)
    t.equal((await client.listTools()).tools.length, 12, era)
    const result = await client.callTool({ name: 'run_command', arguments: { box, command: `echo ${era}` } })
    t.match(result.structuredContent, { status: 'exited', exitCode: 0, stdout: `${era}\n` })
  }
})

t.test('the tools are those of the key, and commands have it as their actor', async (t) => {
  const limited = await createLimitedKey(coordinator, { access: { boxes: 'run' } })
  const client = await connect(t, 'modern', limited)
  t.equal((await client.listTools()).tools.length, 10)
  await client.callTool({ name: 'run_command', arguments: { box, command: 'echo recorded' } })
  const { json } = await coordinator.api('GET', `/boxes/${coordinator.box.id}/commands?limit=1`)
  const me = await coordinator.api('GET', '/me', undefined, { key: limited })
  t.match(json.commands[0], { command: 'echo recorded', source: 'api', actor: { tokenId: me.json.key.id } })
})

t.test('requests without a valid key, of other origins and for other hosts are refused', async (t) => {
  const authorization = `Bearer ${key}`
  t.equal((await post({ authorization })).status, 200)
  const missing = await post({})
  t.match([missing.status, missing.headers.get('www-authenticate')], [401, 'Bearer'])
  t.equal((await post({ authorization: `${authorization}x` })).status, 401)
  t.equal((await post({ authorization, origin: 'https://evil.example' })).status, 403)
  t.equal((await post({ authorization, origin: url })).status, 200)
  t.equal((await fetch(`${url}/mcp`, { headers: { authorization } })).status, 405)
  t.equal((await fetch(`${url}/mcp`, { method: 'POST', headers: { authorization } })).status, 415)
  // fetch() sets Host itself.
  const sent = request(`${url}/mcp`, {
    method: 'POST',
    headers: { authorization, host: 'evil.example' },
  }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  t.equal(response.resume().statusCode, 403)
})

t.test('a client that disconnects leaves no command behind', async (t) => {
  const listRunning = async (): Promise<unknown[]> => {
    const { json } = await boxRequest('GET', '/exec')
    return json.processes.filter(({ running }: { running: boolean }) => running)
  }
  for (const era of ['modern', 'legacy'] as const) {
    const client = await connect(t, era)
    const controller = new AbortController()
    const call = client.callTool(
      { name: 'run_command', arguments: { box, command: 'exec sleep 600' } },
      { signal: controller.signal },
    )
    await waitUntil('the command runs', async () => (await listRunning()).length === 1)
    controller.abort()
    await t.rejects(call)
    await client.close()
    await waitUntil(`the command is terminated (${era})`, async () => (await listRunning()).length === 0)
  }
})

t.test('without BOXWOOD_MCP, there is no such path', async (t) => {
  const other = await startTestCoordinator(t)
  const { status } = await fetch(`${other.url}/mcp`, { method: 'POST' })
  t.equal(status, 404)
})
