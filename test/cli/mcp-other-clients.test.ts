// box mcp and POST /mcp with the client of the earlier SDK, and with the command line of the inspector.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { installMcpClients } from '../support/mcp-clients/install-mcp-clients.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'

const { skip, sdkDir, inspector } = await installMcpClients()
const { url, key, box } = await startCoordinatorWithBox(t, {
  env: { ...limitsEnv({ edgeRequestsPerSecond: 10_000 }), BOXWOOD_MCP: 'on' },
})
const env = { BOXWOOD_URL: url, BOXWOOD_API_KEY: key }
const authorization = `Bearer ${key}`
const command = join(PROJECT_DIR, 'box')

t.test('the client of the earlier SDK', { skip }, async (t) => {
  const { Client } = await import(join(sdkDir, 'index.js'))
  const { StdioClientTransport } = await import(join(sdkDir, 'stdio.js'))
  const { StreamableHTTPClientTransport } = await import(join(sdkDir, 'streamableHttp.js'))
  const transports = {
    stdio: new StdioClientTransport({ command, args: ['mcp'], env: { PATH: process.env.PATH, ...env } }),
    http: new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
      requestInit: { headers: { authorization } },
    }),
  }
  for (const [name, transport] of Object.entries(transports)) {
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(transport)
    t.equal((await client.listTools()).tools.length, 12, name)
    const input = { box: box.hostname, command: `echo ${name}` }
    t.match(await client.callTool({ name: 'run_command', arguments: input }), {
      structuredContent: { exitCode: 0, stdout: `${name}\n` },
      content: [{ type: 'text', text: new RegExp(`\n${name}\n`) }],
    })
    t.match(await client.callTool({ name: 'run_command', arguments: { ...input, box: 'nothing' } }), {
      isError: true,
    })
    await client.close()
  }
})

t.test('the inspector', { skip }, async (t) => {
  const home = createTempDir(t, 'inspector')
  const targets = {
    stdio: ['-e', `BOXWOOD_URL=${url}`, '-e', `BOXWOOD_API_KEY=${key}`, command, 'mcp'],
    http: [`${url}/mcp`, '--transport', 'http', '--header', `Authorization: ${authorization}`],
  }
  for (const [name, target] of Object.entries(targets)) {
    const args = ['--cli', ...target, '--method', 'tools/call', '--tool-name', 'run_command']
    const input = ['--tool-arg', `box=${box.hostname}`, '--tool-arg', `command=echo ${name}`]
    const { stdout } = await promisify(execFile)(process.execPath, [inspector, ...args, ...input], {
      env: { ...process.env, HOME: home, NODE_OPTIONS: '' },
    })
    t.match(JSON.parse(stdout).structuredContent, { exitCode: 0, stdout: `${name}\n` }, name)
  }
})
