// Restarts agents that run another version than new machines. Their boxes and detached commands continue to run.
import type { Logger } from 'pino'
import type { Tunnel, Tunnels } from '../tunnel/types.ts'

export type AgentUpgradesOptions = {
  /** The version with which machines start their agents. */
  agentVersion: string
  tunnels: Pick<Tunnels, 'current' | 'on' | 'off'>
  /**
   * Restarts the connected agent. Later requests wait until it has reconnected. Resolves to false when the agent refuses,
   * because terminal sessions or commands with stdin run.
   */
  restartAgent(boxId: string): Promise<boolean>
  /** Whether no request to the box is in flight, apart from streams, which clients can resume. */
  isIdle(boxId: string): boolean
  log: Pick<Logger, 'info' | 'warn'>
  /** Default: 200 ms. */
  pollMs?: number
  /** Time until the next attempt after a refusal. Default: 30 s. */
  retryMs?: number
}

export type AgentUpgrades = { close(): void }

export function createAgentUpgrades(options: AgentUpgradesOptions): AgentUpgrades {
  const { agentVersion, tunnels, restartAgent, isIdle, log, pollMs = 200, retryMs = 30_000 } = options
  /** Box → the earliest time of the restart. */
  const waiting = new Map<string, number>()
  /** Each agent is restarted once: a box that keeps its old version would otherwise restart indefinitely. */
  const restarted = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function onConnected({ boxId, agentVersion: currentVersion }: Tunnel): void {
    if (currentVersion === agentVersion || restarted.has(boxId)) return
    restartAfter(boxId, 0)
  }

  function restartAfter(boxId: string, ms: number): void {
    waiting.set(boxId, performance.now() + ms)
    timer ??= setInterval(restartIdleAgents, pollMs).unref()
  }

  async function restart(boxId: string): Promise<void> {
    if (await restartAgent(boxId)) return
    log.info({ boxId }, 'the agent refused the restart because terminal sessions or commands with stdin run')
    restarted.delete(boxId)
    if (!isClosed) restartAfter(boxId, retryMs)
  }

  function restartIdleAgents(): void {
    for (const [boxId, earliest] of waiting) {
      const tunnel = tunnels.current(boxId)
      if (tunnel !== undefined && (performance.now() < earliest || !isIdle(boxId))) continue
      waiting.delete(boxId)
      if (tunnel === undefined) continue
      restarted.add(boxId)
      log.info(
        { boxId, from: tunnel.agentVersion, to: agentVersion },
        'restarting an agent of another version',
      )
      restart(boxId).catch((err: unknown) =>
        log.warn(
          { err, boxId },
          'failed to restart an agent; the next wake of the box starts the new version',
        ),
      )
    }
    if (waiting.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  tunnels.on('connected', onConnected)
  return {
    close() {
      isClosed = true
      tunnels.off('connected', onConnected)
      clearInterval(timer)
    },
  }
}
