// A machine gets the build of an upgraded coordinator, while commands, streams, an upload and a terminal run. The previous
// build has another version, and speaks the previous version of the protocol.

import { createHash, randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { VERSION } from '../../shared/version.ts'
import { createResumingReader } from '../support/chaos/resuming-reader.ts'
import {
  copyProject,
  joinMachine,
  PREVIOUS_BUILD,
  startUpgradableCoordinator,
} from '../support/joined-machine.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { openResumingTerminal } from '../support/resuming-terminal.ts'
import { waitUntil } from '../support/wait-until.ts'

const COMMANDS = 20
const STREAMS = 5
/** Counts until the file go exists, and writes the number of lines to a file. */
const countingCommand = (n: number) =>
  `i=0; while [ ! -e go ]; do echo "${n}: line $i"; i=$((i+1)); sleep 0.1; done; echo $i >count-${n}; echo "${n}: end"`
/** Counts lines, and repeats its input. */
const TERMINAL_COMMAND =
  '(i=0; while [ ! -e stop ]; do i=$((i+1)); echo "line $i"; sleep 0.5; done) & ' +
  'while read -r word && [ "$word" != end ]; do echo "read $word"; done; touch stop; wait; exit 3'
const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')
const expectedHash = (n: number, count: number): string =>
  sha256([...Array.from({ length: count }, (_, i) => `${n}: line ${i}\n`), `${n}: end\n`].join(''))

const previousProject = copyProject(t, PREVIOUS_BUILD)
const coordinator = await startUpgradableCoordinator(
  t,
  previousProject,
  limitsEnv({ edgeRequestsPerSecond: 10_000, edgeConcurrency: 1000, edgeStreams: 100 }),
)
const machine = await joinMachine(t, coordinator)
const { boxId, exec, route, readLink } = machine
const oldBuild = readLink('current') ?? ''

t.test('an upgrade interrupts nothing', async (t) => {
  await coordinator.patchRollout({ paused: true })
  await coordinator.kill('SIGTERM')
  await coordinator.startFrom(PROJECT_DIR)
  const paused = await coordinator.waitForAgent(
    boxId,
    'the rollout holds the agent back',
    ({ detail }) => detail === 'The rollout is paused.',
  )
  t.match(paused, { version: `0.0.9+${oldBuild}`, state: 'outdated' })

  const ids: string[] = []
  for (let n = 0; n < COMMANDS; n++) ids.push((await exec(countingCommand(n), { detached: true })).processId)
  const follow = (id: string) =>
    createResumingReader((headers) =>
      coordinator.send('GET', `${route}/exec/${id}/stream?encoding=base64`, undefined, headers),
    )
  const readers = ids.slice(0, STREAMS).map(follow)
  const session = await coordinator.sendJson('POST', `${route}/terminal/sessions`, {
    session: 'work',
    command: TERMINAL_COMMAND,
  })
  const terminal = openResumingTerminal(() => coordinator.url + route, coordinator.authHeaders(), 'work')
  t.teardown(() => terminal.close())
  terminal.type('one\n')
  await waitForText('read one')
  const content = randomBytes(3 * 1024 * 1024)
  const body = new PassThrough()
  const upload = coordinator.send('PUT', `${route}/upload?path=${machine.home}/uploaded`, body, {
    'content-length': content.length,
  })
  body.write(content.subarray(0, 1024 * 1024))
  await waitUntil('the upload has started', async () =>
    (await exec('ls -A')).stdout.includes('.boxwood-write-'),
  )

  await coordinator.patchRollout({ paused: false })
  const installed = await coordinator.waitForAgent(boxId, 'the build is installed', ({ state, detail }) =>
    /^upgrading Waits until/.test(`${state} ${detail}`),
  )
  t.match(installed, { version: `0.0.9+${oldBuild}` })
  t.ok(machine.listVersions().includes(installed.targetBuild ?? ''))
  body.end(content.subarray(1024 * 1024))
  t.equal((await upload).statusCode, 200, 'the upload is complete')
  t.match((await exec('sha256sum <uploaded')).stdout, sha256(content))

  t.match((await exec('echo synchronous')).stdout, 'synchronous\n')

  const upgraded = await coordinator.waitForAgent(
    boxId,
    'the agent is upgraded',
    ({ state }) => state === 'current',
  )
  t.equal(upgraded.version, `${VERSION}+${upgraded.targetBuild}`)
  t.match(
    { current: readLink('current'), previous: readLink('previous') },
    { current: upgraded.targetBuild, previous: oldBuild },
  )

  const { sessions } = await coordinator.sendJson('GET', `${route}/terminal/sessions`)
  t.match(sessions, [{ session: 'work', pid: session.pid, startedAt: session.startedAt }])
  terminal.type('two\n')
  await waitForText('read two')
  t.ok(terminal.counts.connections > 1, 'the client has reconnected')
  t.equal(terminal.counts.screens, 1, 'and continued its output')
  terminal.type('end\n')
  t.match(await terminal.waitForExit(), { exitCode: 3 })
  await terminal.flush()
  const lines = readTerminal().filter((line) => line.startsWith('line '))
  t.same(
    lines,
    lines.map((_, index) => `line ${index + 1}`),
    'no line is lost or repeated',
  )
  const record = () => coordinator.sendJson('GET', `/api/v1/boxes/${boxId}/commands/${session.commandId}`)
  await waitUntil('the exit is recorded', async () => (await record()).command.status !== 'running')
  t.match((await record()).command, { status: 'exited', exitCode: 3 })

  await exec('touch go')
  const results = await Promise.all([...readers, ...ids.slice(STREAMS).map(follow)].map(({ done }) => done))
  for (const [n, { stdout, exit }] of results.entries()) {
    const count = Number((await exec(`cat count-${n}`)).stdout)
    t.equal(stdout.sha256, expectedHash(n, count), `the ${count} lines of command ${n} are complete`)
    t.match(exit, { status: 'exited', exitCode: 0 })
  }
  t.ok(results.slice(0, STREAMS).every(({ connectionCount }) => connectionCount > 0))

  function readTerminal(): string[] {
    const { active } = terminal.terminal.buffer
    return Array.from({ length: active.length }, (_, y) => active.getLine(y)?.translateToString(true) ?? '')
  }

  async function waitForText(text: string): Promise<void> {
    await waitUntil(`the terminal shows ${text}`, async () => {
      await terminal.flush()
      return readTerminal().includes(text)
    })
  }
})

t.test('a kill of the agent or the coordinator during an upgrade only delays it', async (t) => {
  const newBuild = readLink('current')
  await coordinator.kill('SIGTERM')
  // Without the previous build, the agent downloads it.
  rmSync(join(machine.prefix, 'versions', oldBuild), { recursive: true })
  await coordinator.startFrom(previousProject)
  await waitUntil('the agent unpacks the build', isUnpacking)
  process.kill(machine.readAgentPid(), 'SIGKILL')
  t.equal(readLink('current'), newBuild)
  await waitUntil('the agent has removed the incomplete build, or unpacks it again', isUnpacking)
  await coordinator.kill('SIGKILL')
  await coordinator.startFrom(previousProject)
  const agent = await coordinator.waitForAgent(
    boxId,
    'the agent is upgraded',
    ({ state }) => state === 'current',
  )
  t.equal(agent.version, `0.0.9+${oldBuild}`)
  t.equal(readLink('current'), oldBuild)
  t.same(machine.listVersions().sort(), [newBuild, oldBuild].sort(), 'nothing else is left')
  t.match(await exec('echo works'), { stdout: 'works\n' })

  function isUnpacking(): boolean {
    return machine.listVersions().some((name) => name.startsWith('.staging-'))
  }
})
