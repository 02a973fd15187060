// Brings agents to the current build, as far as the rollout of their workspace allows it: machines install the build, and
// the coordinator installs it for local boxes. Then the agent restarts. Boxes and detached commands continue to run.
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { AgentState } from '../../../shared/api/agents.ts'
import type { Tunnel, Tunnels } from '../tunnel/types.ts'
import { decideUpgrade, getBuild, type RolloutRules, type UpgradeDecision } from './decide.ts'

/** The build that an agent should run. */
export type TargetBuild = {
  buildId: string
  /** Installs the build on the machine of the agent; null: it is installed. */
  install: ((tunnel: Tunnel) => Promise<void>) | null
}

export type AgentUpgradesOptions = {
  tunnels: Pick<Tunnels, 'current' | 'on' | 'off'>
  /** null: unknown. */
  findTarget(tunnel: Tunnel): Promise<TargetBuild | null>
  /** Stores the failure that the agent reports. undefined: the box does not exist. */
  loadBox(
    boxId: string,
    failure: string | null,
  ): Promise<{ workspaceId: string; failedBuild: string | null; rollout: RolloutRules } | undefined>
  /**
   * Restarts the connected agent. Later requests wait until it has reconnected. Resolves to false when the agent refuses,
   * because terminal sessions or commands with stdin run.
   * @param buildId an installed build, to which the machine switches
   */
  restartAgent(boxId: string, buildId?: string): Promise<boolean>
  /** Whether no request to the box is in flight, apart from streams, which clients can resume. */
  isIdle(boxId: string): boolean
  log: Pick<Logger, 'info' | 'warn'>
  /** Default: 200 ms. */
  pollMs?: number
  /** Time until the next attempt after a refusal. Default: 30 s. */
  retryMs?: number
  /** Time until the next attempt after a failed installation. Doubles with each failure, up to 1 hour. Default: 1 minute. */
  installRetryMs?: number
}

export type UpgradeStatus = {
  state: Exclude<AgentState, 'offline'>
  detail: string | null
  build: string | null
}

export type AgentUpgrades = {
  /** The state of a connected agent. */
  getStatus(tunnel: Tunnel): Promise<UpgradeStatus>
  /** Applies a changed rollout to the connected agents of the workspace. */
  reconsider(workspaceId: string): void
  close(): void
}

/** An agent of another build. `detail` is for operators. */
type Outdated = {
  workspaceId: string
  targetBuild: string
  state: 'outdated' | 'upgrading' | 'failed'
  detail: string | null
}

/** Downloads of an archive at a time. */
const MAX_INSTALLATIONS = 8
const MAX_INSTALL_RETRY_MS = 60 * 60_000

const DETAILS: Record<Exclude<UpgradeDecision, 'current' | 'upgrade'>, string> = {
  failed: 'The build did not connect on this box, which returned to its previous build.',
  paused: 'The rollout is paused.',
  not_selected: 'The share of the rollout does not contain this box yet.',
}
const WAITING = 'Waits until no request is in flight, and no terminal is open.'
const IN_USE = 'Waits until terminal sessions, and commands that receive stdin, have exited.'
const UNCHANGED =
  'The agent was restarted and still runs another build. The next start of the coordinator tries again.'

export function createAgentUpgrades(options: AgentUpgradesOptions): AgentUpgrades {
  const { tunnels, findTarget, loadBox, restartAgent, isIdle, log, pollMs = 200, retryMs = 30_000 } = options
  const { installRetryMs = 60_000 } = options
  const outdated = new Map<string, Outdated>()
  /** Box → the earliest time of the restart, and the build for it. */
  const waiting = new Map<string, { earliest: number; buildId: string; isInstalled: boolean }>()
  /** Box → the build for which it was restarted. Once: a box that keeps its build would otherwise restart indefinitely. */
  const restarted = new Map<string, string>()
  /** Box → failed installations. */
  const failures = new Map<string, number>()
  const retries = new Map<string, NodeJS.Timeout>()
  const limitInstallations = pLimit(MAX_INSTALLATIONS)
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const isConnected = ({ boxId, generation }: Tunnel): boolean =>
    !isClosed && tunnels.current(boxId)?.generation === generation

  const onConnected = (tunnel: Tunnel): void => {
    consider(tunnel).catch((err: unknown) =>
      log.warn({ err, boxId: tunnel.boxId }, 'failed to upgrade an agent; its next connection tries again'),
    )
  }

  async function consider(tunnel: Tunnel): Promise<void> {
    const { boxId, agentVersion } = tunnel
    clearTimeout(retries.get(boxId))
    waiting.delete(boxId)
    const target = await findTarget(tunnel)
    if (target === null || getBuild(agentVersion) === target.buildId) return void outdated.delete(boxId)
    const targetBuild = target.buildId
    const box = await loadBox(boxId, tunnel.failedBuild)
    if (box === undefined || !isConnected(tunnel)) return
    const { workspaceId, failedBuild, rollout } = box
    const decision = decideUpgrade({ boxId, version: agentVersion, targetBuild, failedBuild, rollout })
    if (decision === 'current') return void outdated.delete(boxId)
    const status: Outdated = { workspaceId, targetBuild, state: 'outdated', detail: null }
    outdated.set(boxId, status)
    if (decision !== 'upgrade') {
      status.state = decision === 'failed' ? 'failed' : 'outdated'
      status.detail = DETAILS[decision]
    } else if (restarted.get(boxId) === targetBuild) status.detail = UNCHANGED
    else await upgrade(tunnel, target, status)
  }

  async function upgrade(tunnel: Tunnel, { buildId, install }: TargetBuild, status: Outdated): Promise<void> {
    const { boxId } = tunnel
    status.state = 'upgrading'
    status.detail = install === null ? WAITING : 'Installs the build.'
    if (install !== null) {
      try {
        await limitInstallations(() => (isConnected(tunnel) ? install(tunnel) : undefined))
      } catch (error) {
        if (isConnected(tunnel)) retryInstallation(tunnel, status, error as Error)
        return
      }
      failures.delete(boxId)
    }
    // The rollout may have changed meanwhile.
    if (!isConnected(tunnel) || outdated.get(boxId) !== status) return
    status.detail = WAITING
    restartAfter(boxId, 0, { buildId, isInstalled: install !== null })
  }

  function retryInstallation(tunnel: Tunnel, status: Outdated, error: Error): void {
    const { boxId } = tunnel
    const failed = (failures.get(boxId) ?? 0) + 1
    failures.set(boxId, failed)
    const ms = Math.min(MAX_INSTALL_RETRY_MS, installRetryMs * 2 ** (failed - 1))
    log.warn({ err: error, boxId, retryInMs: ms }, 'a machine failed to install a build of the agent')
    status.detail = error.message
    const retry = setTimeout(() => isConnected(tunnel) && onConnected(tunnel), ms)
    retries.set(boxId, retry.unref())
  }

  function restartAfter(boxId: string, ms: number, build: { buildId: string; isInstalled: boolean }): void {
    waiting.set(boxId, { ...build, earliest: performance.now() + ms })
    timer ??= setInterval(restartIdleAgents, pollMs).unref()
  }

  async function restart(boxId: string, build: { buildId: string; isInstalled: boolean }): Promise<void> {
    if (await restartAgent(boxId, build.isInstalled ? build.buildId : undefined)) return
    log.info({ boxId }, 'the agent refused the restart because terminal sessions or commands with stdin run')
    restarted.delete(boxId)
    const status = outdated.get(boxId)
    if (isClosed || status?.state !== 'upgrading') return
    status.detail = IN_USE
    restartAfter(boxId, retryMs, build)
  }

  function restartIdleAgents(): void {
    for (const [boxId, { earliest, ...build }] of waiting) {
      const tunnel = tunnels.current(boxId)
      if (tunnel !== undefined && (performance.now() < earliest || !isIdle(boxId))) continue
      waiting.delete(boxId)
      if (tunnel === undefined) continue
      restarted.set(boxId, build.buildId)
      log.info(
        { boxId, from: tunnel.agentVersion, to: build.buildId },
        'restarting an agent of another build',
      )
      restart(boxId, build).catch((err: unknown) =>
        log.warn(
          { err, boxId },
          'failed to restart an agent; the next start of the agent runs the new build',
        ),
      )
    }
    if (waiting.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  tunnels.on('connected', onConnected)
  return {
    async getStatus(tunnel) {
      const target = await findTarget(tunnel)
      const build = target?.buildId ?? null
      if (build === null || getBuild(tunnel.agentVersion) === build)
        return { state: 'current', detail: null, build }
      const status = outdated.get(tunnel.boxId)
      return { state: status?.state ?? 'outdated', detail: status?.detail ?? null, build }
    },
    reconsider(workspaceId) {
      for (const [boxId, status] of outdated) {
        if (status.workspaceId !== workspaceId) continue
        restarted.delete(boxId)
        failures.delete(boxId)
        const tunnel = tunnels.current(boxId)
        if (tunnel === undefined) outdated.delete(boxId)
        else onConnected(tunnel)
      }
    },
    close() {
      isClosed = true
      tunnels.off('connected', onConnected)
      clearInterval(timer)
      for (const retry of retries.values()) clearTimeout(retry)
    },
  }
}
