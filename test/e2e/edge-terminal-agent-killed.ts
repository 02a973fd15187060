// kill -9 of a box's agent while terminal sessions run: they continue, with no output or input lost or repeated.
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import { connectAttachClient } from '../support/attach-client.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { skipWithoutTerminalHost as skip } from '../support/native-parts.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const { url, key, box, boxRequest, api, exec } = sharedCoordinator

type Query = Record<string, string | number>

async function attach(t: Test, query: Query) {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value))
  const path = `/v1/box/${box.hostname}/terminal?${parameters}`
  const client = await connectAttachClient(url + path, { authorization: `Bearer ${key}` })
  t.teardown(() => client.cut())
  let output = ''
  client.takeOutput(({ bytes }) => {
    output += bytes
  })
  return { ...client, output: () => output }
}

/** Resolves when the next agent has connected. */
async function killAgent(): Promise<void> {
  const pid = findAgentPid(box.id)
  process.kill(pid ?? Number.NaN, 'SIGKILL')
  await waitUntil('the next agent runs commands', async () => {
    const isNext = findAgentPid(box.id) !== pid
    return isNext && (await exec('true')).exitCode === 0
  })
}

const findCommand = async (commandId: string) =>
  (await api('GET', `/boxes/${box.id}/commands/${commandId}`)).json.command

t.test('a counting program continues when its agent is killed', { skip }, async (t) => {
  const command = 'i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i"; sleep 0.01; done; exit 3'
  const { json: started } = await boxRequest('POST', '/terminal/sessions', { session: 'count', command })
  const id = randomBytes(8).toString('hex')
  let client = await attach(t, { session: 'count', client: id, offset: 0 })
  let output = ''
  for (let kills = 0; kills < 2; kills++) {
    await waitUntil('lines', () => client.output().split('\n').length > 20)
    await killAgent()
    output += client.output()
    const offset = client.position.stdoutOffset
    client = await attach(t, { session: 'count', client: id, offset, create: 'never' })
    t.match(await client.waitFor('attached'), { session: 'count', stdoutOffset: offset })
  }
  const { json } = await boxRequest('GET', '/terminal/sessions')
  t.match(json.sessions, [{ session: 'count', pid: started.pid, command, startedAt: started.startedAt }])
  t.equal((await findCommand(started.commandId)).status, 'running', 'the history does not call it lost')
  await waitUntil('more lines', () => client.output().split('\n').length > 20)
  await exec('touch stop')
  t.match(await client.waitFor('exit'), { status: 'exited', exitCode: 3 })
  output += client.output()
  const lines = output.split('\r\n').length - 1
  t.equal(output, Array.from({ length: lines }, (_, index) => `line ${index + 1}\r\n`).join(''))
  await waitUntil(
    'the exit is recorded',
    async () => (await findCommand(started.commandId)).status !== 'running',
  )
  t.match(await findCommand(started.commandId), { status: 'exited', exitCode: 3 })
})

t.test('a shell reads on when its agent is killed, and ends with DELETE', { skip }, async (t) => {
  const client = await attach(t, { session: 'shell', client: 'a' })
  client.sendStdin('name=value; echo re""ady\n')
  await waitUntil('ready', () => client.output().includes('ready\r\n'))
  await killAgent()
  const again = await attach(t, { session: 'shell', create: 'never' })
  again.sendStdin('echo "<$name>"\n')
  await waitUntil('the value', () => again.output().includes('<value>\r\n'))
  const { json } = await boxRequest('DELETE', '/terminal/sessions/shell')
  t.match(json, { ok: true, signal: 'HUP' })
  t.same((await boxRequest('GET', '/terminal/sessions')).json.sessions, [])
})
