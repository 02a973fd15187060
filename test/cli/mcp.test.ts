// box mcp with the official client, a coordinator and a real box.
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { connectMcp } from './mcp-client.ts'

const coordinator = await startCoordinatorWithBox(t)
const target = { url: coordinator.url, key: coordinator.key }
const box = coordinator.box.hostname
const mcp = await connectMcp(t, target)

t.test('the server answers server/discover, and the initialize of older clients', async (t) => {
  t.equal(mcp.client.getNegotiatedProtocolVersion(), '2026-07-28')
  const legacy = await connectMcp(t, target, { era: 'legacy' })
  t.equal(legacy.client.getNegotiatedProtocolVersion(), '2025-11-25')
  const [modernTools, legacyTools] = [await mcp.client.listTools(), await legacy.client.listTools()]
  t.same(
    modernTools.tools.map(({ name }) => name),
    legacyTools.tools.map(({ name }) => name),
  )
  t.match(await legacy.call('run_command', { box, command: 'echo legacy' }), { data: { stdout: 'legacy\n' } })
})

t.test('list_boxes lists the boxes, and all about one', async (t) => {
  const all = await mcp.call('list_boxes')
  t.match(all.data.boxes, [{ name: box, state: 'running' }])
  t.match(all.text, `${box}, running`)
  const one = await mcp.call('list_boxes', { box })
  t.match(one.data, { boxes: [{ name: box }], details: { labels: {}, commands: [], listening: [] } })
  t.notMatch(JSON.stringify(one), 'envVars')
  t.match(await mcp.call('list_boxes', { label: 'team=web' }), { data: { boxes: [] } })
})

t.test('run_command runs a command to its end', async (t) => {
  const { text, data } = await mcp.call('run_command', {
    box,
    command: 'echo "$NAME in $PWD"; echo err >&2; exit 3',
    cwd: '/tmp',
    env: { NAME: 'ü' },
  })
  t.match(data, {
    box,
    status: 'exited',
    exitCode: 3,
    stdout: 'ü in /tmp\n',
    stderr: 'err\n',
    omitted: [],
    nextOffset: { stdout: 11, stderr: 4 },
    more: false,
  })
  t.match(text, /exited with 3\.\n--- data of box .* not instructions/)
  const killed = await mcp.call('run_command', { box, command: 'kill -TERM $$' })
  t.match(killed.data, { status: 'killed', signal: 'TERM', exitCode: null })
  const limited = await mcp.call('run_command', { box, command: 'exec sleep 600', timeoutSeconds: 1 })
  t.match(limited.data, { timedOut: true })
  t.match(limited.text, 'time limit')
})

t.test('the history has the key as the actor, and the source api', async (t) => {
  await mcp.call('run_command', { box, command: 'echo recorded' })
  const { json } = await coordinator.api('GET', `/boxes/${coordinator.box.id}/commands?limit=1`)
  const me = await coordinator.api('GET', '/me')
  t.match(json.commands[0], {
    command: 'echo recorded',
    source: 'api',
    actor: { tokenId: me.json.key.id },
  })
})

t.test('the same requestId finds the first command, and another command is refused', async (t) => {
  const command = 'echo $$ >> started; cat started'
  const first = await mcp.call('run_command', { box, command, requestId: 'one' })
  const second = await mcp.call('run_command', { box, command, requestId: 'one' })
  t.equal(second.data.processId, first.data.processId)
  t.equal(second.data.stdout, first.data.stdout)
  const other = await mcp.call('run_command', { box, command: 'true', requestId: 'one' })
  t.ok(other.isError)
  t.match(other.text, /idempotency_key_reused.*\n.*new one/)
})

t.test('stop_command terminates a command, and again does nothing', async (t) => {
  const quick = await connectMcp(t, target, { args: ['--max-wait', '0.2'] })
  const { data } = await quick.call('run_command', { box, command: 'exec sleep 600' })
  t.equal(data.status, 'running')
  const { processId } = data
  t.match(await mcp.call('stop_command', { box, processId }), { data: { wasRunning: true } })
  t.match(await mcp.call('stop_command', { box, processId }), { data: { wasRunning: false } })
  t.match(await mcp.call('read_output', { box, processId }), { data: { status: 'killed', signal: 'TERM' } })
})

t.test('create_box creates a box once', async (t) => {
  const input = { name: 'kiwi', labels: { team: 'web' }, requestId: 'kiwi' }
  const first = await mcp.call('create_box', input)
  t.match(first.data, { name: 'kiwi', state: 'running' })
  t.match(await mcp.call('create_box', input), { data: { id: first.data.id } })
  t.match(await mcp.call('list_boxes', { label: 'team=web' }), { data: { boxes: [{ name: 'kiwi' }] } })
  const taken = await mcp.call('create_box', { name: 'kiwi' })
  t.match(taken, { isError: true, text: /name_taken/ })
  await coordinator.api('DELETE', `/boxes/${first.data.id}`)
  await coordinator.waitForState(first.data.id, 'terminated')
})

t.test('an error has the message of the API, and what to do next', async (t) => {
  t.match(await mcp.call('run_command', { box: 'nothing', command: 'true' }), {
    isError: true,
    text: /There is no box nothing\.\nCall list_boxes/,
  })
  t.match(await mcp.call('run_command', { box, command: 'true', cwd: 'nowhere' }), {
    isError: true,
    text: /nowhere/,
  })
  t.match(await mcp.call('read_output', { box, processId: 'p_nothing' }), { isError: true })
  t.match(await mcp.call('run_command', { box }), { isError: true, text: /command/ })
  t.match(await mcp.call('run_command', { box, command: 'true', shell: 'zsh' }), {
    isError: true,
    text: /shell/,
  })
  await t.rejects(mcp.call('nothing'), /nothing/)
})
