// Restarts agents that run another version than new machines. Their boxes and detached commands continue to run.
import type { Logger } from 'pino'
import type { Tunnel, Tunnels } from '../tunnel/types.ts'

export type AgentUpgradesOptions = {
  /** The version with which machines start their agents. */
  agentVersion: string
  tunnels: Pick<Tunnels, 'current' | 'on' | 'off'>
  /** Restarts the connected agent. Later requests wait until it has reconnected. */
  restartAgent(boxId: string): Promise<void>
  /** Whether no request to the box is in flight, apart from streams, which clients can resume. */
  isIdle(boxId: string): boolean
  log: Pick<Logger, 'info' | 'warn'>
  /** Default: 200 ms. */
  pollMs?: number
}

export type AgentUpgrades = { close(): void }

export function createAgentUpgrades(options: AgentUpgradesOptions): AgentUpgrades {
  const { agentVersion, tunnels, restartAgent, isIdle, log, pollMs = 200 } = options
  const waiting = new Set<string>()
  /** Each agent is restarted once: a box that keeps its old version would otherwise restart indefinitely. */
  const restarted = new Set<string>()
  let timer: NodeJS.Timeout | undefined

  function onConnected({ boxId, agentVersion: currentVersion }: Tunnel): void {
    if (currentVersion === agentVersion || restarted.has(boxId)) return
    waiting.add(boxId)
    timer ??= setInterval(restartIdleAgents, pollMs).unref()
  }

  function restartIdleAgents(): void {
    for (const boxId of waiting) {
      const tunnel = tunnels.current(boxId)
      if (tunnel !== undefined && !isIdle(boxId)) continue
      waiting.delete(boxId)
      if (tunnel === undefined) continue
      restarted.add(boxId)
      log.info(
        { boxId, from: tunnel.agentVersion, to: agentVersion },
        'restarting an agent of another version',
      )
      restartAgent(boxId).catch((err: unknown) =>
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
      tunnels.off('connected', onConnected)
      clearInterval(timer)
    },
  }
}
