// Starts the agent's parts in order: lock, state file, spool, detached processes, prompts, HTTP app, tunnel. close() stops
// them in the reverse order.
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readFile, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { MAX_SURVIVING_COMMANDS } from '../shared/api/reports.ts'
import { systemClock } from '../shared/clock.ts'
import { FAILED_BUILD_HEADER, LINEAGE_HEADER, PLATFORM_HEADER } from '../shared/protocol.ts'
import { buildAgentApp } from './app.ts'
import { createAttachDialer } from './attach/attach-dialer.ts'
import { type AgentConfig, readCoordinatorUrl, readToken } from './config.ts'
import { createAttachments } from './exec/attached/attachments.ts'
import { attachedRoutes } from './exec/attached/routes.ts'
import { openDetachedProcesses } from './exec/detached/processes.ts'
import type { DetachedProcesses } from './exec/detached/types.ts'
import { baseEnvironment } from './exec/environment.ts'
import { createDetachedRecorder } from './exec/history/detached-recorder.ts'
import { createSyncRecorder } from './exec/history/sync-recorder.ts'
import { execRoutes } from './exec/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { lockDirectory } from './lock.ts'
import { openMachine } from './machine/machine.ts'
import { uninstallRoutes } from './machine/uninstall.ts'
import { createProviderDetector } from './prompts/detection/provider-detector.ts'
import { openPrompts } from './prompts/open-prompts.ts'
import { providers } from './prompts/providers/providers.ts'
import { promptRoutes } from './prompts/routes.ts'
import { createCoordinatorClock } from './reports/coordinator-clock.ts'
import { createOpenStreams } from './reports/open-streams.ts'
import { deliverReports, reportRoutes } from './reports/routes.ts'
import { openSpool } from './reports/spool.ts'
import { createRunningClock } from './running-clock.ts'
import { openState } from './state.ts'
import { terminalRoutes } from './terminal/routes.ts'
import { createTerminalSessions } from './terminal/sessions.ts'
import { createProxySelector } from './tunnel/proxy.ts'
import { createStreamDialer } from './tunnel/stream-dialer.ts'
import { createTransferDialer } from './tunnel/transfer-dialer.ts'
import { startTunnel } from './tunnel/tunnel.ts'
import { createBuildState } from './upgrade/build-state.ts'
import { createBuilds } from './upgrade/builds.ts'
import { createArchiveFetcher } from './upgrade/fetch-archive.ts'
import { upgradeRoutes } from './upgrade/routes.ts'
import { agentVersion, buildId } from './version.ts'
import { activityRoutes } from './vitals/activity-routes.ts'
import { createActivityTracker } from './vitals/activity-tracker.ts'
import { liveProcessRoutes } from './vitals/processes/routes.ts'
import { startVitals } from './vitals/vitals.ts'

/** How long close() waits for the exits of detached commands and of coding agents. Longer than TERMINATE_GRACE_MS of synchronous ones. */
const EXITS_TIMEOUT_MS = 2_500
/** How long close() waits for the final reports to be acknowledged. Shorter than the provider's grace period. */
const FINAL_REPORTS_TIMEOUT_MS = 4_000

export type Agent = {
  /**
   * Terminates synchronous commands and terminal sessions, delivers the final reports, disconnects from the coordinator, and resolves when all
   * resources are released.
   * @param options.isRestart the next agent follows immediately: the box keeps running, that agent delivers the reports, and
   *   runs of coding agents continue
   */
  close(options?: { isRestart?: boolean }): Promise<void>
}

/**
 * @param requestRestart called when the coordinator wants the agent to exit, so that the init starts its current version
 * @throws Error when another agent uses the state directory, or when the directory is not usable
 */
export async function startAgent(
  config: AgentConfig,
  log: Logger,
  env: Record<string, string | undefined>,
  requestRestart: () => void = () => undefined,
): Promise<Agent> {
  const { coordinatorUrl, boxId, stateDir, home, spawnerKind, runnerKind, maxLogBytes, retention } = config
  const { idleCpuPercent } = config
  const clock = systemClock
  const instanceId = randomUUID()
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  const realStateDir = await realpath(stateDir)
  const lock = await lockDirectory(stateDir)
  const stateFile = await openState(stateDir, log)
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const spool = await openSpool({ dir: join(stateDir, 'reports'), stateFile, log })

  const runningClock = createRunningClock()
  const { startTimer } = runningClock
  const activity = createActivityTracker(runningClock)
  const detachedOptions = {
    ...{ home, clock, runningClock, log, activity, env, spawnerKind, runnerKind, maxLogBytes, bootId },
  }
  const processes = await openDetachedProcesses({
    ...detachedOptions,
    ...{ dir: join(stateDir, 'exec'), retention },
  })
  const detector = await createProviderDetector({
    ...{ home, providers, clock, log, spawnerKind },
    baseEnv: baseEnvironment(home, env),
  })
  const prompts = await openPrompts({
    ...detachedOptions,
    // Absolute: coding agents read their prompts from it.
    ...{ dir: join(realStateDir, 'prompts'), detector, limits: config.prompts },
  })
  const syncRecorder = createSyncRecorder(spool, log)
  const detachedRecorder = createDetachedRecorder({ processes, spool, log, bootId })
  const attachments = createAttachments({
    ...{ processes, log, startTimer },
    waitUntilRecorded: detachedRecorder.waitUntilRecorded,
  })
  const coordinatorClock = createCoordinatorClock(clock)
  const vitals = await startVitals({
    ...{ boxId, home, stateDir, env, spool, log, activity, idleCpuPercent },
    readCodingAgents: detector.readiness,
    clock: coordinatorClock,
    monotonicNow: runningClock.now,
  })
  const coordinatorAccess = {
    boxId,
    readUrl: () => readCoordinatorUrl(stateDir, coordinatorUrl),
    readToken: () => readToken(stateDir),
    selectProxy: await createProxySelector(),
  }
  const transferDialer = createTransferDialer(coordinatorAccess)
  const streamDialer = createStreamDialer(coordinatorAccess)
  const attachDialer = createAttachDialer(coordinatorAccess)
  const stopController = new AbortController()
  const platform = `${process.platform}-${process.arch}`
  const buildState = createBuildState(stateDir, buildId)
  const builds =
    config.prefix === null || buildId === null
      ? null
      : createBuilds({
          ...{ prefix: config.prefix, buildId, log, platform },
          fetchArchive: createArchiveFetcher(coordinatorAccess.readUrl, coordinatorAccess.selectProxy),
        })
  /** The coordinator uses this connection, so the build works. */
  async function confirmBuild(): Promise<void> {
    await buildState.recordConnected()
    await builds?.prune()
  }
  let isConfirmed = false
  const machine = config.prefix === null ? null : await openMachine(config.prefix, { stateDir, clock, log })
  const terminalSessions = createTerminalSessions({
    ...{ home, clock, log, activity },
    baseEnv: baseEnvironment(home, env),
    recorder: syncRecorder,
  })
  const execDeps = {
    ...{ home, log, clock, startTimer, activity, env, spawnerKind, processes, streamDialer },
    recorder: syncRecorder,
    stopping: stopController.signal,
  }
  const reportDeps = {
    ...{ spool, clock: coordinatorClock },
    ...{ readVitals: vitals.read, listeners: vitals.listeners, codingAgents: detector },
    onCoordinatorTime: coordinatorClock.observe,
    flushRecorders: () => detachedRecorder.flush(),
    openStreams: createOpenStreams(),
    onOpen() {
      if (isConfirmed) return
      isConfirmed = true
      confirmBuild().catch((err: unknown) => {
        // The next connection tries again: the disk may be full.
        isConfirmed = false
        log.warn({ err }, 'failed to record that this build has connected')
      })
    },
  }
  const app = buildAgentApp({
    log,
    routes: [
      (scope) => execRoutes(scope, execDeps),
      (scope) => attachedRoutes(scope, { attachments, attachDialer, log }),
      (scope) =>
        terminalRoutes(scope, {
          ...{ attachDialer, log },
          sessions: terminalSessions,
          stopping: stopController.signal,
        }),
      (scope) => {
        scope.addHook('onRequest', async () => activity.touch())
        return fileRoutes(scope, { home, stateDir: realStateDir, log, clock, transferDialer })
      },
      (scope) =>
        upgradeRoutes(scope, {
          ...{ builds, buildState, requestRestart },
          isInUse: () => terminalSessions.list().length > 0 || attachments.hasOpenStdin(),
        }),
      (scope) => uninstallRoutes(scope, machine?.uninstall ?? null),
      (scope) => promptRoutes(scope, { prompts, detector, activity, stopping: stopController.signal }),
      (scope) => reportRoutes(scope, reportDeps),
      (scope) => liveProcessRoutes(scope, vitals.liveProcesses),
      (scope) => activityRoutes(scope, vitals),
    ],
  })
  await app.ready()
  if (config.socketPath !== null) {
    // This agent holds the lock, so an existing socket is stale.
    await rm(config.socketPath, { force: true })
    await app.listen({ path: config.socketPath })
    await chmod(config.socketPath, 0o600)
  }

  await spool
    .append({
      type: 'agent.started',
      ...{ at: clock.now(), instanceId, bootId, agentVersion },
      survivingCommands: listRunningAttached(processes),
    })
    // A full disk must not make the box unreachable.
    .catch((error: unknown) => log.error({ err: error }, 'failed to record the start of the agent'))
  const tunnel = startTunnel({
    ...coordinatorAccess,
    async readHeaders(): Promise<Record<string, string>> {
      const failure = await buildState.readFailure()
      return {
        ...(failure !== null && { [FAILED_BUILD_HEADER]: failure }),
        ...(machine && { [LINEAGE_HEADER]: machine.lineage.ids.join(',') }),
        ...(builds !== null && { [PLATFORM_HEADER]: platform }),
      }
    },
    ...(machine && { onConnected: machine.onConnected, onDisconnected: machine.onDisconnected }),
    instanceId,
    server: app.server,
    log,
    clock,
    backoff: { baseMs: 500, maxMs: config.maxReconnectDelayMs },
  })
  log.info({ boxId, instanceId, url: coordinatorUrl, agentVersion }, 'agent started')

  /** The machine may be stopping: its processes then exit now, and the next agent may never start. */
  async function deliverFinalReports(): Promise<void> {
    const signal = AbortSignal.timeout(FINAL_REPORTS_TIMEOUT_MS)
    const deliver = async () => {
      const exits = Promise.all([syncRecorder.waitUntilIdle(), detachedRecorder.waitUntilIdle()])
      await Promise.race([exits, sleep(EXITS_TIMEOUT_MS, undefined, { ref: false })])
      await deliverReports(reportDeps, signal)
    }
    // The coordinator is disconnected, or cannot store reports now.
    const noStream = reportDeps.openStreams.waitUntilNone(signal).then(() => {
      throw new Error('the coordinator does not read reports')
    })
    await Promise.race([deliver(), noStream]).catch((err: unknown) =>
      log.warn({ err }, 'the coordinator did not acknowledge the final reports; the next agent sends them'),
    )
  }

  return {
    async close({ isRestart = false } = {}) {
      stopController.abort()
      // First, because the init of the box has signalled the coding agents at the same time.
      const runsEnded = isRestart ? undefined : prompts.expectStop()
      await vitals.close()
      const terminated = terminalSessions.close()
      if (runsEnded !== undefined) {
        const limit = sleep(EXITS_TIMEOUT_MS, undefined, { ref: false })
        await Promise.all([deliverFinalReports(), Promise.race([runsEnded, limit])])
      }
      await terminated
      await builds?.close()
      await tunnel.close()
      await machine?.close()
      streamDialer.close()
      attachDialer.close()
      await app.close()
      syncRecorder.close()
      attachments.close()
      await detachedRecorder.close()
      await detector.close()
      await prompts.close()
      await processes.close()
      runningClock.close()
      await spool.close()
      await lock.release()
    },
  }
}

/** Attached commands, which the history records as synchronous, and which survive an agent. */
const listRunningAttached = (processes: DetachedProcesses): string[] =>
  processes
    .list()
    .filter(({ attached, exit }) => attached !== null && exit === null)
    .map(({ processId }) => processId)
    .slice(0, MAX_SURVIVING_COMMANDS)
