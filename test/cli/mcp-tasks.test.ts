// Commands as tasks, with the official client and that of the Tasks extension, over both transports; and the progress of calls.
import type { Client } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { installMcpClients } from '../support/mcp-clients/install-mcp-clients.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectMcp, connectMcpOverHttp, type McpClient } from './mcp-client.ts'

const { skip, tasksModule } = await installMcpClients()
const coordinator = await startCoordinatorWithBox(t, {
  env: { ...limitsEnv({ edgeRequestsPerSecond: 10_000 }), BOXWOOD_MCP: 'on' },
})
const { url, key, exec } = coordinator
const box = coordinator.box.hostname
const TASKS = 'io.modelcontextprotocol/tasks'
const capabilities = { extensions: { [TASKS]: {} } }

type Message = { id?: unknown; result?: unknown; error?: unknown }

/** Sends requests past the client, which knows no tasks. */
function createDispatch(client: Client) {
  const { transport } = client
  if (transport === undefined) throw new Error('the client is not connected')
  const waiting = new Map<unknown, (message: Message) => void>()
  const onmessage = transport.onmessage?.bind(transport)
  transport.onmessage = (message, extra) => {
    const resolve = waiting.get((message as Message).id)
    if (resolve === undefined) onmessage?.(message, extra)
    else resolve(message as Message)
  }
  return async (request: object) => {
    const id = `raw-${waiting.size}`
    const answered = new Promise<Message>((resolve) => waiting.set(id, resolve))
    await transport.send({ jsonrpc: '2.0', id, ...request } as never)
    const { result, error } = await answered
    return error === undefined ? { kind: 'result', result } : { kind: 'error', error }
  }
}

async function openSession(t: Test, client: Client) {
  const { createTaskSessionFromClient } = await import(tasksModule)
  const clientInfo = { name: 'test', version: '1.0.0' }
  const session = createTaskSessionFromClient(client, {
    endpointId: 'test',
    rawDispatch: createDispatch(client),
    v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo, clientCapabilities: capabilities },
  })
  t.teardown(() => session.close())
  return session
}

const CONNECT: Record<string, (t: Test) => Promise<McpClient>> = {
  stdio: (t) => connectMcp(t, { url, key }, { capabilities }),
  http: (t) => connectMcpOverHttp(t, { url, key }, { capabilities }),
}

for (const [name, connect] of Object.entries(CONNECT))
  t.test(`a command as a task (${name})`, { skip }, async (t) => {
    const { client } = await connect(t)
    // The client learns the capabilities of the server.
    await client.listTools()
    const session = await openSession(t, client)
    const quick = await session.callTool('run_command', { box, command: 'echo quick' })
    t.equal(quick.kind, 'immediate')
    t.match((await quick.settle()).outcome, { result: { structuredContent: { stdout: 'quick\n' } } })

    const file = `go-${name}`
    const command = `echo first; while [ ! -e ${file} ]; do sleep 0.05; done; echo second; exit 3`
    const execution = await session.callTool('run_command', { box, command, waitSeconds: 1 })
    t.equal(execution.kind, 'task')
    // The task survives the server: another one answers.
    const other = await connect(t)
    const { taskId } = execution.handle
    const get = (id: string) =>
      createDispatch(other.client)({ method: 'tasks/get', params: { taskId: id, _meta } })
    t.match(await get(taskId), { result: { taskId, status: 'working', resultType: 'complete' } })
    await exec(`touch ${file}`)
    const { outcome } = await execution.settle()
    t.match(outcome, {
      result: { structuredContent: { status: 'exited', exitCode: 3, stdout: 'first\nsecond\n' } },
    })

    const endless = await session.callTool('run_command', { box, command: 'exec sleep 600', waitSeconds: 1 })
    await endless.cancel()
    const stopped = await waitUntil('the command has ended', async () => {
      const answer = await get(endless.handle.taskId)
      return (
        answer.kind === 'result' && (answer.result as { status: string }).status === 'completed' && answer
      )
    })
    t.match(stopped, { result: { result: { structuredContent: { status: 'killed', signal: 'TERM' } } } })
    for (const unknown of ['nothing', `${coordinator.box.id}.p_0123456789abcdef01234567`, 'gone.p_1'])
      t.match(await get(unknown), { error: { code: -32602 } }, unknown)
  })

const _meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
}

t.test('a client that does not declare the extension gets no task', async (t) => {
  const mcp = await connectMcp(t, { url, key }, { args: ['--max-wait', '0.2'] })
  const { data } = await mcp.call('run_command', { box, command: 'exec sleep 600' })
  t.equal(data.status, 'running')
  const taskId = `${coordinator.box.id}.${data.processId}`
  const meta = { ..._meta, 'io.modelcontextprotocol/clientCapabilities': {} }
  t.match(await createDispatch(mcp.client)({ method: 'tasks/get', params: { taskId, _meta: meta } }), {
    error: { code: -32021, data: { requiredCapabilities: capabilities } },
  })
  const readOnly = await connectMcp(t, { url, key }, { args: ['--read-only'], capabilities })
  t.match(await createDispatch(readOnly.client)({ method: 'tasks/cancel', params: { taskId, _meta } }), {
    error: { code: -32601 },
  })
  await mcp.call('stop_command', { box, processId: data.processId })
})

t.test('a call with a progress token reports how far it is', async (t) => {
  const command = 'printf 12345; while [ ! -e continue ]; do sleep 0.05; done; rm continue'
  for (const era of ['modern', 'legacy'] as const)
    for (const connect of [connectMcp, connectMcpOverHttp]) {
      const { client } = await connect(t, { url, key }, { era })
      const reports: { progress: number; message?: string | undefined }[] = []
      const call = client.callTool(
        { name: 'run_command', arguments: { box, command } },
        { onprogress: (report) => void reports.push(report) },
      )
      await waitUntil('the output is reported', () =>
        reports.some(({ message }) => message?.includes('Output: 5 bytes')),
      )
      await exec('touch continue')
      t.match(await call, { structuredContent: { status: 'exited', stdout: '12345' } })
      const values = reports.map(({ progress }) => progress)
      t.same(
        values,
        [...new Set(values)].sort((a, b) => a - b),
        'it increases',
      )
    }
})
