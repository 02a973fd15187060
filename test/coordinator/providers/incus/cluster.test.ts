// Boxes on a cluster of two members: moves with their files, members that fail, and kill -9 during moves.
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual, promisify } from 'node:util'
import t, { type Test } from 'tap'
import { IncusClient } from '../../../../coordinator/providers/incus/client.ts'
import type { Box } from '../../../../shared/api/boxes.ts'
import type { Snapshot } from '../../../../shared/api/snapshots.ts'
import type { Region } from '../../../../shared/tiers.ts'
import { startCoordinatorProcess } from '../../../support/coordinator-process.ts'
import { findIncusProblem } from '../../../support/engines/incus.ts'
import { startIncusCluster } from '../../../support/engines/incus-cluster.ts'
import { getNamespacesDir, runInOwnNamespaces } from '../../../support/engines/own-namespaces.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../../support/wait-until.ts'

const [REGION_1, REGION_2] = ['us-east-1', 'us-east-2'] as const
/** A move of them takes long enough to be interrupted. */
const LARGE_BYTES = 200_000_000

const problem = findIncusProblem()
const dir = getNamespacesDir()
if (problem !== undefined) t.plan(0, problem)
else if (dir === undefined) runInOwnNamespaces(t, import.meta.filename)
else t.test('boxes on a cluster', (t) => testCluster(t, dir))

async function testCluster(t: Test, dir: string) {
  const cluster = await startIncusCluster(t, { dir })
  const [first, second] = cluster.members
  const url = `http://${cluster.hubAddress}:7070`
  const certificateDir = join(cluster.dir, 'certificate')
  mkdirSync(certificateDir)
  await promisify(execFile)('incus', ['remote', 'generate-certificate'], {
    env: { ...process.env, INCUS_CONF: certificateDir },
  })
  await first.incus(['config', 'trust', 'add-certificate', join(certificateDir, 'client.crt')])
  await first.incus(['cluster', 'group', 'create', 'group'])
  await first.incus(['cluster', 'group', 'assign', second.name, 'default,group'])
  await t.test('a server that refuses the connection', (t) =>
    testRefusals(t, first.url, cluster.certificateFile),
  )
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_LISTEN: `${cluster.hubAddress}:7070`,
    BOXWOOD_AGENT_URL: url,
    BOXWOOD_REGIONS: `${REGION_1}=incus/${first.name},${REGION_2}=incus/@group`,
    BOXWOOD_DEFAULT_IMAGE: 'busybox',
    BOXWOOD_INCUS: first.url,
    BOXWOOD_INCUS_CERT: join(certificateDir, 'client.crt'),
    BOXWOOD_INCUS_KEY: join(certificateDir, 'client.key'),
    BOXWOOD_INCUS_SERVER_CERT: cluster.certificateFile,
    BOXWOOD_LOG: 'warn',
  })
  const listInstances = async (id: string) => {
    const lines = (await first.incus(['list', '--format=csv', '--columns=nL'])).trim().split('\n')
    const isOfBox = (line: string) => line.startsWith(`boxwood-${id.replaceAll('-', '')}`)
    return lines.filter(isOfBox).map((line) => line.split(','))
  }
  const run = async (id: string, command: string) => {
    const { exitCode, stdout } = await coordinator.exec(id, command, { timeoutSeconds: 60 })
    return exitCode === 0 ? stdout.trim() : `exited with ${exitCode}`
  }
  const readFiles = (id: string) => run(id, 'cat /root/note; sha256sum </root/large')
  const writeFiles = async (id: string) => {
    await run(id, `echo ${id} >/root/note; head -c ${LARGE_BYTES} /dev/urandom >/root/large; sync`)
    return await readFiles(id)
  }
  const post = async (path: string, body: object) => {
    const { status, ...response } = await coordinator.sendJson('POST', `/api/v1${path}`, body)
    if (status >= 400) throw new Error(JSON.stringify(response))
    return response
  }
  const requestMove = (id: string, region: Region) => post(`/boxes/${id}/region`, { region })
  const waitForBox = (id: string, wanted: Partial<Box>) =>
    waitUntil(
      `box ${id} is ${JSON.stringify(wanted)}`,
      async () => {
        const { box } = await coordinator.sendJson('GET', `/api/v1/boxes/${id}`)
        return isDeepStrictEqual({ ...box, ...wanted }, box)
      },
      // A box becomes degraded when its agent is disconnected for a minute.
      LONG_DEADLINE_MS,
    )
  const waitForRegion = (id: string, region: Region) => waitForBox(id, { observedState: 'running', region })
  const waitForCopy = (id: string) =>
    waitUntil(`box ${id} is copied`, async () => (await listInstances(id)).length === 2)
  const checkBox = async (name: string, id: string, member: string, files: string) => {
    t.same(await listInstances(id), [[`boxwood-${id.replaceAll('-', '')}`, member]], `${name}: one instance`)
    t.equal(await readFiles(id), files, `${name}: it has its files`)
  }
  const time = async (name: string, work: () => Promise<unknown>) => {
    const start = performance.now()
    await work()
    t.comment(`${name}: ${Math.round(performance.now() - start)} ms`)
  }

  const { id: moved } = await coordinator.waitForFirstBox()
  const created = await post('/boxes', { region: REGION_2 })
  const files = await writeFiles(moved)
  const { snapshot } = await post('/snapshots', { boxId: moved, name: 'before' })
  await waitUntil('the snapshot is available', async () => {
    const { snapshots }: { snapshots: Snapshot[] } = await coordinator.sendJson('GET', '/api/v1/snapshots')
    return snapshots.find((other) => other.id === snapshot.id)?.status === 'available'
  })
  const restore = async (): Promise<string> => (await post(`/snapshots/${snapshot.id}/restore`, {})).box.id
  const toFailed = await restore()
  const fromFailed: string = created.box.id
  for (const id of [toFailed, fromFailed]) await coordinator.waitForState(id, 'running')
  const otherFiles = await writeFiles(fromFailed)

  // A workspace may move three boxes a day, and each box once.
  await requestMove(moved, REGION_2)
  await waitForCopy(moved)
  await coordinator.kill('SIGKILL')
  await coordinator.start()
  await waitForRegion(moved, REGION_2)
  await checkBox('a coordinator that was killed', moved, second.name, files)

  await requestMove(toFailed, REGION_2)
  await requestMove(fromFailed, REGION_1)
  await Promise.all([toFailed, fromFailed].map(waitForCopy))
  await second.powerOff()
  await time('degraded', () => waitForBox(moved, { observedState: 'degraded' }))
  const restored = await restore()
  await time('restore without the member', () => coordinator.waitForState(restored, 'running'))
  t.equal(await readFiles(restored), files, 'a snapshot of a box that has moved is usable')
  await second.start()
  await time('return of the member', async () => {
    await waitForRegion(moved, REGION_2)
    await waitForRegion(toFailed, REGION_2)
    await waitForRegion(fromFailed, REGION_1)
  })
  await checkBox('a member that failed', moved, second.name, files)
  await checkBox('a target that failed', toFailed, second.name, files)
  await checkBox('a source that failed', fromFailed, first.name, otherFiles)
}

async function testRefusals(t: Test, url: string, certificateFile: string) {
  const connect = async (pinnedCertificate?: string) => {
    const tls = pinnedCertificate === undefined ? {} : { pinnedCertificate }
    const client = new IncusClient({ address: { kind: 'tcp', url, tls } })
    try {
      await client.connect()
    } finally {
      await client.close()
    }
  }
  const certificate = readFileSync(certificateFile, 'utf8')
  await t.rejects(connect(certificate), { message: /incus config trust add-certificate FILE/ })
  await t.rejects(connect(), { message: /Set BOXWOOD_INCUS_SERVER_CERT to a copy of .*cluster\.crt/ })
}
