// Runs `box mcp`, and connects the official client to it, or to POST /mcp.
import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import {
  Client,
  type ClientCapabilities,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Test } from 'tap'
import { type Target, TEST_PATH } from './run-box.ts'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')

export type McpOptions = {
  /** Of box mcp. */
  args?: string[]
  /** Default: the current revision. legacy: the client opens with `initialize`. */
  era?: 'modern' | 'legacy'
  /** Of the client. Default: none. */
  capabilities?: ClientCapabilities
}

/** The result of a tool. */
export type ToolResult = {
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: each tool has other fields.
  data: any
  isError: boolean
  content: { type: string; text?: string; data?: string; mimeType?: string }[]
}

export type McpClient = Awaited<ReturnType<typeof connect>>

const createEnv = ({ url, key }: Target) => ({
  PATH: TEST_PATH,
  BOXWOOD_URL: url,
  BOXWOOD_API_KEY: key,
  XDG_CONFIG_HOME: '/nonexistent',
})

/** Sends a call to `box mcp` and reads no answer. */
const HOST = `
const { spawn } = require('node:child_process')
const { main, call } = JSON.parse(process.argv[1])
const server = spawn(process.execPath, [main, 'mcp'], { stdio: ['pipe', 'ignore', 'inherit'] })
const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const clientInfo = { name: 'host', version: '1.0.0' }
send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
send({ method: 'notifications/initialized' })
send({ id: 2, method: 'tools/call', params: call })`

/** A host in a process of its own, which starts `box mcp` and calls a tool. It is killed after the test. */
export function startHost(
  t: Test,
  target: Target,
  name: string,
  input: Record<string, unknown>,
): ChildProcess {
  const options = JSON.stringify({ main: MAIN, call: { name, arguments: input } })
  const host = spawn(process.execPath, ['-e', HOST, options], { env: createEnv(target), stdio: 'inherit' })
  t.teardown(() => host.kill('SIGKILL'))
  return host
}

/** The process ends after the test. */
export async function connectMcp(t: Test, target: Target, { args = [], ...options }: McpOptions = {}) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', ...args],
    env: createEnv(target),
    stderr: 'inherit',
  })
  return { ...(await connect(t, transport, options)), transport }
}

/** Connects to POST /mcp of a coordinator. */
export function connectMcpOverHttp(t: Test, { url, key }: Target, options: Omit<McpOptions, 'args'> = {}) {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  })
  return connect(t, transport, options)
}

async function connect(t: Test, transport: Transport, { era = 'modern', capabilities = {} }: McpOptions) {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } },
  )
  await client.connect(transport)
  t.teardown(() => client.close())
  return {
    client,
    async call(name: string, input: Record<string, unknown> = {}, signal?: AbortSignal): Promise<ToolResult> {
      const result = await client.callTool({ name, arguments: input }, signal === undefined ? {} : { signal })
      const content = result.content as ToolResult['content']
      return {
        text: content[0]?.text ?? '',
        data: result.structuredContent,
        isError: result.isError === true,
        content,
      }
    },
  }
}
