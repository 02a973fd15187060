// Runs `box mcp`, and connects the official client to it.
import { resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Test } from 'tap'
import { type Target, TEST_PATH } from './run-box.ts'

const MAIN = resolve(import.meta.dirname, '../../cli/main.ts')

export type McpOptions = {
  /** Of box mcp. */
  args?: string[]
  /** Default: the current revision. legacy: the client opens with `initialize`. */
  era?: 'modern' | 'legacy'
}

/** The result of a tool. */
export type ToolResult = {
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: each tool has other fields.
  data: any
  isError: boolean
  content: { type: string; text?: string; data?: string; mimeType?: string }[]
}

export type McpClient = Awaited<ReturnType<typeof connectMcp>>

/** The process ends after the test. */
export async function connectMcp(
  t: Test,
  { url, key }: Target,
  { args = [], era = 'modern' }: McpOptions = {},
) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', ...args],
    env: { PATH: TEST_PATH, BOXWOOD_URL: url, BOXWOOD_API_KEY: key, XDG_CONFIG_HOME: '/nonexistent' },
    stderr: 'inherit',
  })
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' } },
  )
  await client.connect(transport)
  t.teardown(() => client.close())
  return {
    client,
    transport,
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
