// Brings agents to the current build, as far as the rollout of their workspace allows it: machines install the build, and
// the coordinator installs it for local boxes. Then the agent restarts. Boxes and detached commands continue to run.
import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { AgentState } from '../../../shared/api/agents.ts'
import { backoffDelay, noJitter } from '../../../shared/backoff.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Tunnel, Tunnels } from '../tunnel/types.ts'
import { decideUpgrade, getBuild, type RolloutRules, type UpgradeDecision } from './decide.ts'

/** The build that an agent should run. */
export type TargetBuild = {
  buildId: string
  /** See UpgradeInput. */
  isOffered: boolean
  /** Installs the build on the machine of the agent; null: it is installed. */
  install: ((tunnel: Tunnel) => Promise<void>) | null
}

export type FindTarget = (tunnel: Tunnel, host?: string | null) => Promise<TargetBuild | null>

export type AgentUpgradesOptions = {
  tunnels: Pick<Tunnels, 'local' | 'on' | 'off'>
  /**
   * Returns null when the build is unknown.
   * @param host the host of the box. Default: from the database, where it is needed
   */
  findTarget: FindTarget
  /** Makes findTarget() return what the other coordinators report now. undefined: this is the only coordinator of the database. */
  refreshTargets: (() => Promise<void>) | undefined
  /** Stores the failure that the agent reports. undefined: the box does not exist. */
  loadBox(
    boxId: string,
    failure: string | null,
  ): Promise<{ workspaceId: string; failedBuild: string | null; rollout: RolloutRules } | undefined>
  /**
   * Restarts the connected agent. Later requests wait until it has reconnected. Resolves to false when the agent refuses,
   * because a terminal session that it would end, or a command with stdin runs.
   * @param buildId an installed build, to which the machine switches
   */
  restartAgent(boxId: string, buildId?: string): Promise<boolean>
  /** Whether no request to the box is in flight, apart from streams and terminals, which clients can resume. */
  isIdle(boxId: string): boolean
  log: Pick<Logger, 'info' | 'warn'>
  /** Default: 200 ms. */
  pollMs?: number
  /** Measures the time between attempts. Default: monotonic. */
  clock?: Clock
  /** Minimum time between two restart requests to an agent that refuses, also on another connection. Default: 30 s. */
  retryMs?: number
  /** Time until the next attempt after a failed installation. Doubles with each failure, up to 1 hour. Default: 1 minute. */
  installRetryMs?: number
}

export type UpgradeStatus = {
  state: Exclude<AgentState, 'offline'>
  detail: string | null
  build: string | null
}

/** A connected agent that does not run its target build. `detail` explains the state to operators. */
type Outdated = {
  workspaceId: string
  targetBuild: string
  isOffered: boolean
  state: 'outdated' | 'upgrading' | 'failed'
  detail: string | null
}

/** The maximum number of agents that download a build at a time. */
const MAX_INSTALLATIONS = 8
const MAX_INSTALL_RETRY_MS = 60 * 60_000

const DETAILS: Record<Exclude<UpgradeDecision, 'current' | 'upgrade'>, string> = {
  elsewhere: 'Waits until the agent connects to a coordinator that has the build.',
  failed: 'The build did not connect on this box, which returned to its previous build.',
  paused: 'The rollout is paused.',
  not_selected: 'The share of the rollout does not contain this box yet.',
}
const WAITING = 'Waits until no request is in flight.'
const IN_USE =
  'Waits until terminal sessions that the restart would end, and commands that receive stdin, have exited.'
const UNCHANGED =
  'The agent was restarted and still runs another build. The next start of the coordinator tries again.'

/** A restart that waits until no request to the box is in flight. */
type Restart = { buildId: string; isInstalled: boolean }

export class AgentUpgrades {
  readonly #options: Required<AgentUpgradesOptions>
  readonly #outdated = new Map<string, Outdated>()
  readonly #waiting = new Map<string, Restart>()
  /** Box → the earliest time of the next attempt, after a refusal. */
  readonly #refused = new Map<string, number>()
  /** Box → the build for which it was restarted. A box that keeps its build must not restart indefinitely. */
  readonly #restarted = new Map<string, string>()
  /** Box → failed installations. */
  readonly #failures = new Map<string, number>()
  readonly #retries = new Map<string, NodeJS.Timeout>()
  readonly #limitInstallations = pLimit(MAX_INSTALLATIONS)
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: AgentUpgradesOptions) {
    const clock = { now: () => performance.now() }
    this.#options = { clock, pollMs: 200, retryMs: 30_000, installRetryMs: 60_000, ...options }
    options.tunnels.on('connected', this.#onConnected)
  }

  /** The state of a connected agent. */
  async getStatus(tunnel: Tunnel, host?: string | null): Promise<UpgradeStatus> {
    const target = await this.#options.findTarget(tunnel, host)
    const build = target?.buildId ?? null
    if (build === null || getBuild(tunnel.agentVersion) === build)
      return { state: 'current', detail: null, build }
    const status = this.#outdated.get(tunnel.boxId)
    return { state: status?.state ?? 'outdated', detail: status?.detail ?? null, build }
  }

  /** Applies a changed rollout to the connected agents of the workspace. */
  applyRollout(workspaceId: string): void {
    for (const [boxId, status] of this.#outdated) {
      if (status.workspaceId !== workspaceId) continue
      this.#restarted.delete(boxId)
      this.#failures.delete(boxId)
      this.#readRollout(boxId)
    }
  }

  /** Reads the rollouts of all workspaces again. An agent that a restart has not upgraded is not restarted again. */
  readRollouts(): void {
    for (const boxId of this.#outdated.keys()) this.#readRollout(boxId)
  }

  #readRollout(boxId: string): void {
    const tunnel = this.#options.tunnels.local(boxId)
    if (tunnel === undefined) this.#outdated.delete(boxId)
    else this.#onConnected(tunnel)
  }

  /** Decides again for the connected agents whose target build has changed: the coordinators offer other builds. */
  async applyTargets(tunnels: Iterable<Tunnel>): Promise<void> {
    for (const tunnel of tunnels) {
      if (!this.#isConnected(tunnel)) continue
      const target = await this.#options.findTarget(tunnel)
      const known = this.#outdated.get(tunnel.boxId)
      const isKnown =
        known === undefined
          ? target === null || target.buildId === getBuild(tunnel.agentVersion)
          : target?.buildId === known.targetBuild && target.isOffered === known.isOffered
      if (!isKnown) this.#onConnected(tunnel)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#options.tunnels.off('connected', this.#onConnected)
    clearInterval(this.#timer)
    for (const retry of this.#retries.values()) clearTimeout(retry)
  }

  readonly #onConnected = (tunnel: Tunnel): void => {
    this.#consider(tunnel).catch((err: unknown) =>
      this.#options.log.warn(
        { err, boxId: tunnel.boxId },
        'failed to upgrade an agent; its next connection tries again',
      ),
    )
  }

  #isConnected({ boxId, generation }: Tunnel): boolean {
    return !this.#isClosed && this.#options.tunnels.local(boxId)?.generation === generation
  }

  async #consider(tunnel: Tunnel): Promise<void> {
    const { boxId, agentVersion } = tunnel
    clearTimeout(this.#retries.get(boxId))
    this.#waiting.delete(boxId)
    const target = await this.#options.findTarget(tunnel)
    if (target === null || getBuild(agentVersion) === target.buildId) return this.#forget(boxId)
    const { buildId: targetBuild, isOffered } = target
    const box = await this.#options.loadBox(boxId, tunnel.failedBuild)
    if (box === undefined || !this.#isConnected(tunnel)) return
    const { workspaceId, failedBuild, rollout } = box
    const input = { boxId, version: agentVersion, targetBuild, isOffered, failedBuild, rollout }
    const decision = decideUpgrade(input)
    if (decision === 'current') return this.#forget(boxId)
    const status: Outdated = { workspaceId, targetBuild, isOffered, state: 'outdated', detail: null }
    this.#outdated.set(boxId, status)
    if (decision !== 'upgrade') {
      status.state = decision === 'failed' ? 'failed' : 'outdated'
      status.detail = DETAILS[decision]
    } else if (this.#restarted.get(boxId) === targetBuild) status.detail = UNCHANGED
    else await this.#upgrade(tunnel, target, status)
  }

  #forget(boxId: string): void {
    this.#outdated.delete(boxId)
    this.#refused.delete(boxId)
  }

  async #upgrade(tunnel: Tunnel, { buildId, install }: TargetBuild, status: Outdated): Promise<void> {
    const { boxId } = tunnel
    status.state = 'upgrading'
    status.detail = install === null ? WAITING : 'Installs the build.'
    if (install !== null) {
      try {
        await this.#limitInstallations(() => (this.#isConnected(tunnel) ? install(tunnel) : undefined))
      } catch (error) {
        if (this.#isConnected(tunnel)) this.#retryInstallation(tunnel, status, error as Error)
        return
      }
      this.#failures.delete(boxId)
    }
    // The rollout may have changed meanwhile.
    if (!this.#isConnected(tunnel) || this.#outdated.get(boxId) !== status) return
    status.detail = WAITING
    this.#waitForRestart(boxId, { buildId, isInstalled: install !== null })
  }

  #retryInstallation(tunnel: Tunnel, status: Outdated, error: Error): void {
    const { boxId } = tunnel
    const failed = (this.#failures.get(boxId) ?? 0) + 1
    this.#failures.set(boxId, failed)
    const backoff = { baseMs: this.#options.installRetryMs, maxMs: MAX_INSTALL_RETRY_MS }
    const ms = backoffDelay(failed - 1, backoff, noJitter)
    this.#options.log.warn(
      { err: error, boxId, retryInMs: ms },
      'a machine failed to install a build of the agent',
    )
    status.detail = error.message
    const retry = setTimeout(() => this.#isConnected(tunnel) && this.#onConnected(tunnel), ms)
    this.#retries.set(boxId, retry.unref())
  }

  #waitForRestart(boxId: string, restart: Restart): void {
    this.#waiting.set(boxId, restart)
    this.#timer ??= setInterval(() => this.#restartIdleAgents(), this.#options.pollMs).unref()
  }

  #restartIdleAgents(): void {
    const { clock, tunnels, isIdle, log } = this.#options
    for (const [boxId, restart] of this.#waiting) {
      const tunnel = tunnels.local(boxId)
      const earliest = this.#refused.get(boxId) ?? 0
      if (tunnel !== undefined && (clock.now() < earliest || !isIdle(boxId))) continue
      this.#waiting.delete(boxId)
      if (tunnel === undefined) continue
      this.#restart(tunnel, restart).catch((err: unknown) =>
        log.warn(
          { err, boxId },
          'failed to restart an agent; the next start of the agent runs the new build',
        ),
      )
    }
    if (this.#waiting.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Whether the agent may still restart with the build, as the coordinators report now. If not, decides again. */
  async #confirm(tunnel: Tunnel, restart: Restart): Promise<boolean> {
    const { refreshTargets, findTarget, isIdle, clock, retryMs, log } = this.#options
    const { boxId } = tunnel
    try {
      await refreshTargets?.()
      const target = await findTarget(tunnel)
      if (!this.#isConnected(tunnel)) return false
      if (target?.buildId !== restart.buildId || !target.isOffered) {
        this.#onConnected(tunnel)
        return false
      }
    } catch (err) {
      log.warn({ err, boxId, retryInMs: retryMs }, 'failed to read the builds of the other coordinators')
      this.#refused.set(boxId, clock.now() + retryMs)
    }
    if (clock.now() >= (this.#refused.get(boxId) ?? 0) && isIdle(boxId)) return true
    this.#waitForRestart(boxId, restart)
    return false
  }

  async #restart(tunnel: Tunnel, restart: Restart): Promise<void> {
    const { restartAgent, clock, retryMs, log } = this.#options
    const { boxId, agentVersion } = tunnel
    if (this.#options.refreshTargets !== undefined && !(await this.#confirm(tunnel, restart))) return
    this.#restarted.set(boxId, restart.buildId)
    if (await restartAgent(boxId, restart.isInstalled ? restart.buildId : undefined)) {
      this.#refused.delete(boxId)
      log.info({ boxId, from: agentVersion, to: restart.buildId }, 'restarted an agent of another build')
      return
    }
    // A terminal may be open for days: only the first refusal is logged.
    if (!this.#refused.has(boxId))
      log.info(
        { boxId, retryInMs: retryMs },
        'the agent refused the restart, which would end terminal sessions or commands with stdin',
      )
    this.#refused.set(boxId, clock.now() + retryMs)
    this.#restarted.delete(boxId)
    const status = this.#outdated.get(boxId)
    if (this.#isClosed || status?.state !== 'upgrading') return
    status.detail = IN_USE
    this.#waitForRestart(boxId, restart)
  }
}
