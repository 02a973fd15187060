// Runs the coordinator behind two proxies, whose connections tests cut: that of the clients and that of the agent.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { startCoordinatorProcess } from './coordinator-process.ts'
import { startTunnelProxy } from './tunnel-proxy.ts'

export type ProxiedCoordinator = Awaited<ReturnType<typeof startProxiedCoordinator>>

/** Resolves when the coordinator's first box runs. */
export async function startProxiedCoordinator(t: Test, env: Record<string, string> = {}) {
  const target = { port: 0 }
  const clientProxy = await startTunnelProxy(() => target.port)
  const agentProxy = await startTunnelProxy(() => target.port)
  // Runs after the coordinator's own teardown, which needs a connection to the box: the last one that is added runs first.
  t.teardown(() => Promise.all([clientProxy.close(), agentProxy.close()]))
  const coordinator = await startCoordinatorProcess(t, {
    BOXWOOD_PUBLIC_URL: clientProxy.url,
    BOXWOOD_AGENT_URL: agentProxy.url,
    BOXWOOD_LOG: 'silent',
    ...env,
  })
  /** The coordinator has another port after each start. */
  const updateTarget = () => {
    target.port = Number(new URL(coordinator.url).port)
  }
  updateTarget()
  const { id, hostname } = await coordinator.waitForFirstBox()
  return {
    coordinator,
    clientProxy,
    agentProxy,
    box: { id, hostname } as { id: string; hostname: string },
    /** The owner's API key. */
    key: readFileSync(join(coordinator.dataDir, 'owner.key'), 'utf8').trim(),
    /** Kills the coordinator and starts it again. */
    async restart(signal: NodeJS.Signals = 'SIGKILL') {
      await coordinator.kill(signal)
      await coordinator.start()
      updateTarget()
    },
  }
}
