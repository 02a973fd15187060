// box mcp install writes the configuration of hosts, with a key of its own.
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { parse } from 'smol-toml'
import t from 'tap'
import { setEntry } from '../../cli/mcp/edit-config.ts'
import { HOST_FILES } from '../../cli/mcp/hosts.ts'
import { startTestCoordinator } from '../support/coordinator.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { runBox } from './run-box.ts'

const { url, dataDir, api } = await startTestCoordinator(t)
const home = createTempDir(t, 'home')
const env = { HOME: home, XDG_CONFIG_HOME: join(home, '.config'), BOXWOOD_DATA: dataDir, CODEX_HOME: '' }
const box = (...args: string[]) => runBox(null, ['mcp', 'install', ...args], { env })
const read = (file: string): string => readFileSync(join(home, file), 'utf8')
const write = (file: string, text: string): void => {
  mkdirSync(dirname(join(home, file)), { recursive: true })
  writeFileSync(join(home, file), text)
}
const getKey = async (secret: string) => (await api('GET', '/me', undefined, { key: secret })).json

await api('POST', '/boxes', { name: 'fig' })

t.test('without a sign-in nothing is written', async (t) => {
  t.match(await box('claude'), { code: 4, stderr: /box login/ })
  t.throws(() => read('.claude.json'), { code: 'ENOENT' })
  await runBox(null, ['login'], { env })
})

t.test('claude: the other settings stay, and the key may use boxes only', async (t) => {
  write('.claude.json', '{"theme":"dark","mcpServers":{"other":{"command":"other"}}}')
  const { code, stdout, stderr } = await box('claude')
  t.match({ code, stdout }, { code: 0, stdout: '' })
  t.match(stderr, /Claude Code starts `box mcp`/)
  const config = JSON.parse(read('.claude.json'))
  const { boxwood, other } = config.mcpServers
  t.equal(config.theme, 'dark')
  t.same(other, { command: 'other' })
  t.match(boxwood, {
    type: 'stdio',
    command: join(PROJECT_DIR, 'box'),
    args: ['mcp'],
    env: { BOXWOOD_URL: url },
  })
  t.equal(statSync(join(home, '.claude.json')).mode & 0o777, 0o600)
  const secret = boxwood.env.BOXWOOD_API_KEY
  t.notMatch(stderr, secret)
  t.same((await getKey(secret)).access, { boxes: 'write', workspace: 'none' })

  const transport = new StdioClientTransport({
    command: boxwood.command,
    args: boxwood.args,
    env: { PATH: '/usr/bin:/bin', ...boxwood.env },
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  t.equal((await client.listTools()).tools.length, 12)
  await client.close()
})

t.test('again, the key and the options are replaced, and the earlier key is revoked', async (t) => {
  const getServer = () => JSON.parse(read('.claude.json')).mcpServers.boxwood
  const before = getServer().env.BOXWOOD_API_KEY
  t.match(await box('claude', '--box', 'fig', '--read-only'), { code: 0 })
  t.same(getServer().args, ['mcp', '--read-only', '--box', 'fig'])
  t.equal((await api('GET', '/me', undefined, { key: before })).status, 401)
  const { access, key } = await getKey(getServer().env.BOXWOOD_API_KEY)
  t.same(access, { boxes: 'read', workspace: 'none' })
  t.equal(key.boxIds.length, 1)
})

t.test('codex: comments and the other tables stay', async (t) => {
  write('.codex/config.toml', 'model = "gpt-5" # mine\n\n[mcp_servers.other]\ncommand = "other"\n')
  for (const args of [[], ['--no-create']]) {
    t.match(await box('codex', ...args), { code: 0 })
    const text = read('.codex/config.toml')
    t.ok(text.startsWith('model = "gpt-5" # mine\n\n[mcp_servers.other]\ncommand = "other"\n\n'))
    t.match(parse(text), {
      mcp_servers: {
        other: {},
        boxwood: { args: ['mcp', ...args], env: { BOXWOOD_URL: url }, tool_timeout_sec: 90 },
      },
    })
  }
})

t.test('opencode, cursor and vscode', async (t) => {
  for (const host of ['opencode', 'cursor', 'vscode']) t.match(await box(host), { code: 0 })
  t.match(JSON.parse(read('.config/opencode/opencode.json')).mcp.boxwood, {
    type: 'local',
    command: [join(PROJECT_DIR, 'box'), 'mcp'],
    environment: { BOXWOOD_URL: url },
  })
  t.match(JSON.parse(read('.cursor/mcp.json')).mcpServers.boxwood, { args: ['mcp'] })
  t.match(JSON.parse(read('.config/Code/User/mcp.json')).servers.boxwood, { type: 'stdio' })
})

t.test('--print changes nothing', async (t) => {
  const before = read('.cursor/mcp.json')
  const { stdout, stderr } = await box('cursor', '--print', '--box', 'fig')
  t.match(JSON.parse(stdout).mcpServers.boxwood, {
    args: ['mcp', '--box', 'fig'],
    env: { BOXWOOD_API_KEY: 'dcp_…' },
  })
  t.match(stderr, /\.cursor\/mcp\.json.*keys create/)
  t.equal(read('.cursor/mcp.json'), before)
})

t.test('a file that cannot be kept is not changed, and no key is created', async (t) => {
  const countKeys = async (): Promise<number> => {
    const { stdout } = await runBox(null, ['keys', '-q'], { env })
    return stdout.split('\n').length
  }
  const before = await countKeys()
  write('.cursor/mcp.json', '// mine\n{}')
  t.match(await box('cursor'), { code: 1, stderr: /was not changed, because it has comments.*--print/ })
  t.equal(read('.cursor/mcp.json'), '// mine\n{}')
  write('.cursor/mcp.json', '{"mcpServers":[]}')
  t.match(await box('cursor'), { code: 1, stderr: /unusual form/ })
  write('.codex/config.toml', 'mcp_servers = { boxwood = { command = "a" } }\n')
  t.match(await box('codex'), { code: 1, stderr: /was not changed/ })
  t.match(await box('cursor', '--box', 'nothing'), { code: 1 })
  t.match(await box('emacs'), { code: 2, stderr: /claude, codex, opencode, cursor, vscode/ })
  t.equal(await countKeys(), before)
})

t.test('a link stays a link', async (t) => {
  write('dotfiles/mcp.json', '{}')
  write('linked/.cursor/none', '')
  symlinkSync(join(home, 'dotfiles/mcp.json'), join(home, 'linked/.cursor/mcp.json'))
  const linked = { ...env, HOME: join(home, 'linked') }
  t.match(await runBox(null, ['mcp', 'install', 'cursor'], { env: linked }), { code: 0 })
  t.match(JSON.parse(read('dotfiles/mcp.json')), { mcpServers: { boxwood: {} } })
})

t.test('tables of TOML are replaced with their subtables', async (t) => {
  const text =
    '[mcp_servers.boxwood]\ncommand = "a"\n[mcp_servers.boxwood.env]\nA = "1"\n# end\n[[other]]\nb = 1\n'
  const result = setEntry(HOST_FILES.codex, text, { command: 'b', env: { B: '2' } })
  t.same(JSON.parse(JSON.stringify(parse(result))), {
    other: [{ b: 1 }],
    mcp_servers: { boxwood: { command: 'b', env: { B: '2' } } },
  })
})
