// A coordinator is backed up while a machine works, and restored into another directory at another address. The agent of the
// machine reconnects through the public URL, its command continues, and every acknowledged command is in the history.

import { join } from 'node:path'
import { test } from 'tap'
import { restoreBackup } from '../../../coordinator/server/backup/restore.ts'
import { writeBackup } from '../../../coordinator/server/backup/write-backup.ts'
import { loadConfig } from '../../../coordinator/server/config.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'
import { requestToken } from '../../support/enroll.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { HOST_ADDRESS, startMachine } from '../../support/root-filesystems/machine.ts'
import { buildTrees } from '../../support/root-filesystems/trees.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { startTunnelProxy } from '../../support/tunnel-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { runLine } from './join-support.ts'

const NAME = 'fig'
const BEATS = '/tmp/beats'
const COUNT = `n=0; while sleep 0.1; do n=$((n+1)); echo $n >>${BEATS}; done`

const trees = await buildTrees(['trixie'])

test('a machine continues with the restored coordinator', 'skip' in trees ? trees : {}, async (t) => {
  if ('skip' in trees) return
  const { signal } = new AbortController()
  const target = { port: 0 }
  const proxy = await startTunnelProxy(() => target.port)
  const env = {
    BOXWOOD_PUBLIC_URL: `http://${HOST_ADDRESS}:${new URL(proxy.url).port}`,
    ...limitsEnv({ edgeRequestsPerSecond: 10_000 }),
  }
  const portOf = ({ url }: { url: string }) => Number(new URL(url).port)

  const first = await startTestCoordinator(t, { machines: 'joined', env })
  t.teardown(() => proxy.close())
  target.port = portOf(first)
  const machine = await startMachine(t, { tree: trees.paths.trixie, init: 'systemd' })
  const created = await requestToken(first, { name: NAME })
  t.match(await runLine(machine, created.json.command), `box exec ${NAME} -- uname -a`)
  const findBox = async (coordinator: typeof first) =>
    (await coordinator.api('GET', '/boxes')).json.boxes.find(
      ({ hostname }: { hostname: string }) => hostname === NAME,
    )
  await first.waitForState((await findBox(first)).id, 'running')
  const detached = await first.edge(NAME, 'POST', '/exec', { command: COUNT, detached: true })
  t.equal(detached.status, 200, detached.text)
  const boxBefore = await findBox(first)

  // Commands before and during the backup.
  const commands: string[] = []
  let isStopped = false
  const load = (async () => {
    for (let number = 0; !isStopped; number++) {
      const { status, json } = await first.edge(NAME, 'POST', '/exec', { command: `echo ${number}` })
      if (status !== 200 || json.exitCode !== 0)
        throw new Error(`command ${number} failed: ${JSON.stringify(json)}`)
      commands.push(`echo ${number}`)
    }
  })()
  const listCommands = async (coordinator: typeof first): Promise<string[]> => {
    const { json } = await coordinator.api('GET', `/boxes/${boxBefore.id}/commands?limit=200`)
    return json.commands.map(({ command }: { command: string }) => command)
  }
  // A command is in the history when the coordinator has acknowledged the report of the agent.
  const acknowledged = await waitUntil('10 commands are in the history', async () => {
    const found = await listCommands(first)
    return found.length > 10 ? found : undefined
  })
  const file = join(createTempDir(t, 'backup'), 'boxwood.tar')
  const configOf = (dataDir: string) => loadConfig({ ...env, BOXWOOD_DATA: dataDir, BOXWOOD_LOG: 'silent' })
  await writeBackup(configOf(first.dataDir), file, { includeBoxes: true, signal })
  isStopped = true
  await load
  await first.close()

  const dataDir = join(createTempDir(t, 'restored'), 'elsewhere')
  await restoreBackup(configOf(dataDir), file, signal)
  const second = await startTestCoordinator(t, { machines: 'joined', env, dataDir })
  t.not(portOf(second), portOf(first), 'another address')
  t.equal(second.key, first.key)
  target.port = portOf(second)

  await waitUntil('the machine has reconnected', async () => {
    const { status, json } = await second.edge(NAME, 'POST', '/exec', { command: 'echo again' })
    return status === 200 && json.stdout === 'again\n'
  })
  const { updatedAt: _, ...expected } = boxBefore
  t.match(await findBox(second), { ...expected, observedState: 'running' }, 'the box is as it was')
  const after = await listCommands(second)
  t.same(
    acknowledged.filter((command) => !after.includes(command)),
    [],
    `${acknowledged.length} acknowledged commands`,
  )

  const { json } = await second.edge(NAME, 'GET', `/exec/${detached.json.processId}`)
  t.match(json, { running: true, lost: false }, 'the detached command continues')
  const beats = (await machine.run(`cat ${BEATS}`)).stdout.trim().split('\n').map(Number)
  t.same(
    beats,
    beats.map((_, index) => index + 1),
    'the command was not interrupted',
  )
})
