// A coordinator that has the same port after each start, and whose boxes share the network of the host.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { startCoordinatorProcess } from '../coordinator-process.ts'

export type FixedPortSetup = Awaited<ReturnType<typeof startFixedPortSetup>>

export async function startFixedPortSetup(t: Test) {
  const env: Record<string, string> = { BOXWOOD_LOCAL_NETWORK: 'host', BOXWOOD_LOG: 'silent' }
  const coordinator = await startCoordinatorProcess(t, env)
  const { host, port } = new URL(coordinator.url)
  env.BOXWOOD_LISTEN = host
  return {
    coordinator,
    port: Number(port),
    box: await coordinator.waitForFirstBox(),
    key: readFileSync(join(coordinator.dataDir, 'owner.key'), 'utf8').trim(),
    /** Kills the coordinator, and starts it after `downMs`. */
    async killAndRestart(downMs: number): Promise<void> {
      await coordinator.kill('SIGKILL')
      await delay(downMs)
      await coordinator.start()
    },
    /** Creates a box that runs. */
    async createBox(name: string): Promise<{ id: string; hostname: string }> {
      const { box } = await coordinator.sendJson('POST', '/api/v1/boxes', { name })
      return coordinator.waitForState(box.id, 'running')
    },
  }
}
