// An upgrade of the agent while a terminal session without a host runs, which the restart would end: the agent refuses. It is asked
// rarely, its tunnel stays, and it is upgraded when the session has ended.
import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { getNativeFileName, NATIVE_PARTS } from '../../../shared/native-file-names.ts'
import { startCoordinatorProcess } from '../coordinator-process.ts'
import { copyProject } from '../joined-machine.ts'
import { createSeededRandom } from '../random.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'

const METRICS_TOKEN = 'a-token-of-the-metrics'
const REQUESTS = 50
/** Of the coordinator between two requests to an agent that refuses. */
const RETRY_MS = 30_000

/** Returns how often the agent was asked. */
export async function runRefusedUpgradeRound(t: Test, { seed }: { seed: number }) {
  const random = createSeededRandom(seed)
  const projectDir = copyProject(t, {})
  const sources = join(projectDir, 'agent/exec/native')
  const read = (name: string) => readFileSync(join(sources, name))
  rmSync(join(sources, getNativeFileName(NATIVE_PARTS.terminalHost, read)), { force: true })
  const env: Record<string, string> = {
    BOXWOOD_LOCAL_ISOLATION: 'process',
    BOXWOOD_LOG: 'fatal',
    BOXWOOD_METRICS_TOKEN: METRICS_TOKEN,
  }
  const coordinator = await startCoordinatorProcess(t, env, projectDir)
  env.BOXWOOD_LISTEN = new URL(coordinator.url).host
  const { id, hostname } = await coordinator.waitForFirstBox()
  const readVersion = async () =>
    (await coordinator.sendJson('GET', `/api/v1/boxes/${id}`)).vitals?.agent_version
  const oldVersion = await waitUntil('the agent has sent its version', readVersion)

  // Without the terminal host, a terminal session ends with its agent.
  const started = await coordinator.sendJson('POST', `/v1/box/${hostname}/terminal/sessions`, {
    session: 'main',
    command: 'cat',
  })
  t.equal(started.status, 200)

  await coordinator.kill(random() < 0.5 ? 'SIGTERM' : 'SIGKILL')
  appendFileSync(join(projectDir, 'agent/init/init.sh'), `# Version ${seed}.\n`)
  await coordinator.start()
  const readCounts = async () => {
    const response = await fetch(`${coordinator.url}/metrics`, {
      headers: { authorization: `Bearer ${METRICS_TOKEN}` },
    })
    const lines = (await response.text()).split('\n')
    const sum = (pattern: RegExp) =>
      lines.reduce((total, line) => total + (pattern.test(line) ? Number(line.split(' ').at(-1)) : 0), 0)
    return {
      restarts: sum(/^boxwood_tunnel_request_duration_seconds_count\{.*route="\/restart"/),
      connects: sum(/^boxwood_agent_connects_total /),
      disconnects: sum(/^boxwood_agent_disconnects_total /),
    }
  }
  await waitUntil(
    'the agent has refused',
    async () => {
      const { agents } = await coordinator.sendJson('GET', '/api/v1/agents')
      return /have exited/.test(agents.find((agent: { boxId: string }) => agent.boxId === id)?.detail ?? '')
    },
    LONG_DEADLINE_MS,
  )
  const first = await readCounts()
  const startedAt = performance.now()
  for (let number = 0; number < REQUESTS; number++) {
    const { stdout } = await coordinator.exec(hostname, `echo ${number}`)
    t.equal(stdout, `${number}\n`)
  }
  const last = await readCounts()
  const possible = 1 + Math.floor((performance.now() - startedAt) / RETRY_MS)
  t.ok(last.restarts - first.restarts <= possible, `${last.restarts} requests to restart`)
  t.equal(last.connects, first.connects, 'a refusal is no new connection')
  t.equal(last.disconnects, first.disconnects, 'the tunnel stays')
  t.equal(await readVersion(), oldVersion)

  const { sessions } = await coordinator.sendJson('GET', `/v1/box/${hostname}/terminal/sessions`)
  t.match(sessions, [{ session: 'main', pid: started.pid }], 'the program continues')
  await coordinator.sendJson('DELETE', `/v1/box/${hostname}/terminal/sessions/main`)
  await waitUntil(
    'the agent is upgraded when the session has ended',
    async () => (await readVersion()) !== oldVersion,
    LONG_DEADLINE_MS,
  )
  return { restarts: last.restarts }
}
