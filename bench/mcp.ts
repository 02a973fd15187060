// Measures box mcp: its start, what run_command adds to the same command of the client, and the size of its tools. `node bench/mcp.ts` runs
// only this benchmark.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Boxwood as BoxwoodClient } from '../client/exports.ts'
import { PROJECT_DIR } from '../test/support/project.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { getPid, readCpuSeconds, terminate } from './support/processes.ts'
import { formatNumber, measureDuration, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const STARTS = 20
const EXECS = 300
const WARM_UP = 20
/** The characters of a token of English text and JSON, on average. */
const TOKEN_CHARS = 4

const PROGRAM = join(PROJECT_DIR, 'box')
const clientInfo = { name: 'bench', version: '1.0.0' }
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
}

export async function benchMcp({ url, key, box }: Boxwood): Promise<Table[]> {
  const env = { PATH: process.env.PATH ?? '', BOXWOOD_URL: url, BOXWOOD_API_KEY: key }

  /** Until the first answer, in milliseconds. */
  async function start(): Promise<{ duration: number; cpu: number }> {
    const begin = performance.now()
    const child = spawn(PROGRAM, ['mcp'], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    child.stdin.write(`${JSON.stringify(INITIALIZE)}\n`)
    await once(child.stdout, 'data')
    const duration = performance.now() - begin
    const cpu = (await readCpuSeconds(getPid(child))) * 1000
    await terminate(child)
    return { duration, cpu }
  }

  /** The start of Node, which is a part of it. */
  const startNode = () => once(spawn(process.execPath, ['--eval', ''], { stdio: 'ignore' }), 'exit')

  const starts = { node: [] as number[], mcp: [] as number[], cpu: [] as number[] }
  for (let round = 0; round < STARTS; round += 1) {
    starts.node.push(await measureDuration(startNode))
    const { duration, cpu } = await start()
    starts.mcp.push(duration)
    starts.cpu.push(cpu)
  }
  // The first start compiles the sources.
  const [firstAnswer, cpu] = [starts.mcp, starts.cpu].map((samples) => median(samples.slice(1)))

  const direct = await new BoxwoodClient({ url, apiKey: key }).boxes.get(box.hostname)
  const client = new Client(clientInfo, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new StdioClientTransport({ command: PROGRAM, args: ['mcp'], env }))
  const times = { exec: [] as number[], tool: [] as number[] }
  const call = { name: 'run_command', arguments: { box: box.hostname, command: 'true' } }
  try {
    for (let round = 0; round < EXECS; round += 1) {
      times.exec.push(await measureDuration(() => direct.exec('true')))
      times.tool.push(await measureDuration(() => client.callTool(call)))
    }
    const [exec, tool] = [times.exec, times.tool].map((samples) => median(samples.slice(WARM_UP)))
    const { tools } = await client.listTools()
    const shown = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    const [tokens, allTokens] = [shown, tools].map((list) => JSON.stringify(list).length / TOKEN_CHARS)
    return [
      {
        title: '`box mcp`',
        columns: ['', 'p50 (ms)', 'CPU (ms)'],
        rows: [
          ['start of Node', formatNumber(median(starts.node)), ''],
          [
            'from the start of `box mcp` to its first answer',
            formatNumber(firstAnswer ?? 0),
            formatNumber(cpu ?? 0),
          ],
          ["`exec('true')` of the client", formatNumber(exec ?? 0), ''],
          ['`run_command` with `true`', formatNumber(tool ?? 0), ''],
        ],
      },
      {
        title: `The ${tools.length} tools of \`box mcp\``,
        columns: ['', 'tokens'],
        rows: [
          ['names, descriptions and input, which hosts give to the model', formatNumber(tokens ?? 0)],
          ['the whole answer of `tools/list`', formatNumber(allTokens ?? 0)],
        ],
      },
    ]
  } finally {
    await client.close()
  }
}

if (import.meta.main) {
  const boxwood = await startBoxwood()
  try {
    for (const table of await benchMcp(boxwood)) console.log(formatMarkdown(table))
  } finally {
    await boxwood.close()
  }
}
