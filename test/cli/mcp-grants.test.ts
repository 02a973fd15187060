// The tools of box mcp by the access of the key and by options, and what they say about themselves.
import t from 'tap'
import { Boxwood } from '../../client/boxwood.ts'
import type { KeyLimits } from '../../coordinator/identity/keys/keys.ts'
import type { McpOptions } from '../../mcp/context.ts'
import { findGrants } from '../../mcp/grants.ts'
import { listTools } from '../../mcp/tools/list.ts'
import { createLimitedKey } from '../support/limited-key.ts'
import { startCliCoordinator } from './coordinator.ts'
import { connectMcp } from './mcp-client.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'kiwi'])
const { url, key } = coordinator

/** The characters of a token of English text and JSON, on average. */
const TOKEN_CHARS = 4

const READ = ['list_boxes', 'read_output', 'list_files', 'read_file', 'read_prompt']
const RUN = [
  'list_boxes',
  'run_command',
  'read_output',
  'stop_command',
  'list_files',
  'read_file',
  'write_file',
  'prompt_agent',
  'read_prompt',
  'change_box',
]
const ALL = [
  'list_boxes',
  'create_box',
  'run_command',
  'read_output',
  'stop_command',
  'list_files',
  'read_file',
  'write_file',
  'share_port',
  'prompt_agent',
  'read_prompt',
  'change_box',
]

/** The tools of a process with these options, and this key. */
async function findTools(options: McpOptions = {}, apiKey = key) {
  const account = await new Boxwood({ url, apiKey }).routes.account.get()
  const tools = listTools(findGrants(account, options))
  const action = tools.find(({ name }) => name === 'change_box')?.inputSchema.shape.action
  return {
    names: tools.map(({ name }) => name),
    actions: action === undefined ? [] : (action as unknown as { options: string[] }).options,
  }
}

const findToolsOfKey = async (limits: KeyLimits, options: McpOptions = {}) =>
  findTools(options, await createLimitedKey(coordinator, limits))

t.test('a tool that the key may not use is not listed', async (t) => {
  t.same((await findTools()).names, ALL)
  t.same((await findToolsOfKey({ access: { boxes: 'read' } })).names, READ)
  t.same((await findToolsOfKey({ access: { boxes: 'run' } })).names, RUN)
  t.same((await findToolsOfKey({ access: { boxes: 'write', workspace: 'read' } })).names, ALL)
  t.same((await findToolsOfKey({ access: { workspace: 'write' } })).names, [])
  const { id } = await coordinator.findBox('fig')
  const { names, actions } = await findToolsOfKey({ boxIds: [id] })
  t.same(
    names,
    ALL.filter((name) => name !== 'create_box'),
  )
  t.same(actions, ['wake', 'suspend', 'snapshot'])
})

t.test('a tool that is not listed cannot be called', async (t) => {
  const mcp = await connectMcp(t, { url, key }, { args: ['--read-only'] })
  const { tools } = await mcp.client.listTools()
  t.same(
    tools.map(({ name }) => name),
    READ,
  )
  await t.rejects(mcp.call('run_command', { box: 'fig', command: 'true' }), /run_command/)
})

t.test('what the key may not do is an error that names the reason', async (t) => {
  const limited = await createLimitedKey(coordinator, { access: { boxes: 'write' } })
  const mcp = await connectMcp(t, { url, key: limited })
  // The key is limited further while the host runs.
  coordinator.respondNext('POST /api/v1/boxes', 403, {
    error: 'key_access_denied',
    message: 'The key does not allow this.',
    area: 'boxes',
    level: 'write',
  })
  t.match(await mcp.call('create_box', {}), {
    isError: true,
    text: /^Error key_access_denied: The key does not allow this\.\n.*ask the user/,
  })
  const revoked = await connectMcp(t, { url, key: 'dcp_0123456789abcdef0123456789abcdef0123456789abcdef' })
  t.match(await revoked.call('list_boxes'), { isError: true, text: /unauthorized.*\n.*box login/ })
})

t.test('options narrow the tools further', async (t) => {
  t.same((await findTools({ isReadOnly: true })).names, READ)
  const noCreate = await findTools({ canCreate: false })
  t.same(
    noCreate.names,
    ALL.filter((name) => name !== 'create_box'),
  )
  t.same(noCreate.actions, ['wake', 'suspend', 'snapshot'])
  t.same((await findTools({ canDelete: true })).actions, ['wake', 'suspend', 'snapshot', 'fork', 'delete'])
  const open = { canDelete: true, canSharePublicly: true }
  t.same((await findToolsOfKey({ access: { boxes: 'run' } }, open)).names, RUN)
  t.same((await findToolsOfKey({ access: { workspace: 'read' } }, { isReadOnly: true })).names, [])
})

t.test('with --box, the other boxes are neither listed nor used', async (t) => {
  const { id } = await coordinator.findBox('fig')
  for (const name of ['fig', id]) {
    const mcp = await connectMcp(t, { url, key }, { args: ['--box', name, '--box', 'gone'] })
    const { data } = await mcp.call('list_boxes')
    t.match(data.boxes, [{ name: 'fig' }])
    t.equal(data.boxes.length, 1)
    t.match(await mcp.call('list_boxes', { box: 'fig' }), { data: { details: { commands: null } } })
    t.match(await mcp.call('list_boxes', { box: 'kiwi' }), {
      isError: true,
      text: /may not use the box kiwi/,
    })
    t.match(await mcp.call('change_box', { box: 'kiwi', action: 'suspend' }), { isError: true })
  }
  t.equal((await coordinator.findBox('kiwi')).observedState, 'running')
})

t.test('each tool says what it does, in few tokens, and hosts may keep the list', async (t) => {
  const { client } = await connectMcp(t, { url, key }, { args: ['--allow-delete', '--allow-public'] })
  const listed = await client.listTools()
  t.match(listed, { ttlMs: 300_000, cacheScope: 'private' })
  t.same(await client.listTools(undefined, { cacheMode: 'refresh' }), listed)
  const { tools } = listed
  const shown = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
  const tokens = JSON.stringify(shown).length / TOKEN_CHARS
  t.ok(tokens <= 2_500, `${tokens} tokens`)
  for (const { name, description, outputSchema, annotations = {} } of tools) {
    t.ok((description ?? '') !== '' && outputSchema !== undefined, name)
    t.same(
      Object.keys(annotations).sort(),
      ['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint'],
      name,
    )
  }
  t.same(
    tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name),
    READ,
  )
  t.same(
    tools.filter(({ annotations }) => annotations?.destructiveHint).map(({ name }) => name),
    ['run_command', 'stop_command', 'write_file', 'prompt_agent', 'change_box'],
  )
})

t.test('mistakes of options are errors of the command', async (t) => {
  t.match(await runBox({ url, key }, ['mcp', '--max-wait', '100']), { code: 2, stderr: /between 0.1 and 45/ })
  t.match(await runBox({ url, key }, ['mcp', 'fig']), { code: 2, stdout: '' })
  t.match(await runBox(null, ['mcp'], { env: { BOXWOOD_DATA: '/nonexistent' } }), { stderr: /box up/ })
  // The host has closed standard input.
  t.match(await runBox({ url, key }, ['mcp']), { code: 0, stdout: '', stderr: '' })
})
