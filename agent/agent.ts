// Starts the agent's parts in order, and closes them in the reverse order.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { systemClock } from '../shared/clock.ts'
import { LINEAGE_HEADER } from '../shared/protocol.ts'
import { createActivityTracker } from './activity-tracker.ts'
import { Broker } from './broker/broker.ts'
import { createCloudCredentials } from './cloud/credentials.ts'
import { openCodingAgents } from './coding-agents.ts'
import type { AgentConfig } from './config.ts'
import { createCoordinatorAccess, createCoordinatorConnections } from './coordinator-connections.ts'
import { Desktop } from './desktop/desktop.ts'
import { createViewers } from './desktop/viewers.ts'
import { createGit } from './environment/git.ts'
import { createRepos } from './environment/repos.ts'
import { openCommands } from './exec/commands.ts'
import { baseEnvironment, createEnvironmentFactory } from './exec/environment.ts'
import { CredentialFiles } from './files/credential-files.ts'
import { openMachine } from './machine/machine.ts'
import { createPortConnector } from './ports/connect.ts'
import { createCoordinatorClock } from './reports/coordinator-clock.ts'
import { deliverFinalReports, EXITS_TIMEOUT_MS } from './reports/final-reports.ts'
import { NextReports } from './reports/next-reports.ts'
import { createOpenStreams } from './reports/open-streams.ts'
import { streamReports } from './reports/stream-reports.ts'
import { createAgentRouter } from './routes.ts'
import { createRunningClock } from './running-clock.ts'
import { openStorage } from './storage.ts'
import { openTerminalSessions } from './terminal/sessions.ts'
import { startTunnel } from './tunnel/tunnel.ts'
import { createUpgrades } from './upgrade/upgrades.ts'
import { agentVersion } from './version.ts'
import { startVitals } from './vitals/vitals.ts'

export type Agent = {
  /**
   * Terminates synchronous commands and terminal sessions, delivers the final reports, disconnects from the coordinator, and resolves when all
   * resources are released.
   * @param options.isRestart the next agent follows immediately: the box keeps running, that agent delivers the reports, and
   *   runs of coding agents and terminal sessions continue
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
  const { boxId, stateDir, home, prefix, spawnerKind, runnerKind, maxLogBytes, retention } = config
  const clock = systemClock
  const instanceId = randomUUID()
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const stopController = new AbortController()
  const stopping = stopController.signal
  await using cleanup = new AsyncDisposableStack()
  const use = <T extends { close(): unknown }>(part: T): T => {
    cleanup.defer(async () => void (await part.close()))
    return part
  }

  const { spool, realDir } = use(await openStorage(stateDir, log))
  const runningClock = use(createRunningClock())
  const coordinatorClock = createCoordinatorClock(clock)
  const activity = createActivityTracker(runningClock)
  const access = await createCoordinatorAccess(config)
  const broker = use(await Broker.open({ ...access, dir: join(realDir, 'broker'), env, log }))
  const baseEnv = baseEnvironment(home, env)
  const createEnv = createEnvironmentFactory(baseEnv, broker.readVariables)
  const credentialFiles = new CredentialFiles(home)
  const common = { home, clock, runningClock, log, activity, env, createEnv, spawnerKind, bootId }
  const detached = { ...common, runnerKind, maxLogBytes }
  const commands = use(await openCommands({ ...detached, dir: join(stateDir, 'exec'), retention, spool }))
  const { processes, attachments, recorder } = commands
  const { detector, prompts } = use(
    // The directory is absolute, because coding agents read their prompts from it.
    await openCodingAgents({ ...detached, baseEnv, dir: join(realDir, 'prompts'), limits: config.prompts }),
  )
  const vitals = use(
    await startVitals({
      ...common,
      boxId,
      stateDir,
      spool,
      idleCpuPercent: config.idleCpuPercent,
      readCodingAgents: detector.readiness,
      readAgentPort: broker.readPort,
      clock: coordinatorClock,
      monotonicNow: runningClock.now,
    }),
  )
  const connections = use(createCoordinatorConnections(access))
  const { attachDialer, portDialer, streamDialer, transferDialer } = connections
  const upgrades = use(createUpgrades({ ...access, stateDir, prefix, log }))
  const cloud = createCloudCredentials({ home, stateDir: realDir, clock, log })
  const machine = prefix === null ? null : use(await openMachine(prefix, { ...common, stateDir, cloud }))
  const sessions = use(await openTerminalSessions({ ...common, recorder, dir: join(realDir, 'terminals') }))
  // Chromium neither trusts the authority of the broker, nor sends the credential of its proxy.
  const createBrowserEnv = createEnvironmentFactory(baseEnv)
  const desktop = await Desktop.open({ ...common, createBrowserEnv, dir: join(realDir, 'desktop') })
  const viewers = use(createViewers({ desktop, portDialer, activity, log }))
  const git = use(createGit({ ...common, startTimer: runningClock.startTimer }))
  const repos = createRepos({ home, stateDir: realDir, git, activity })
  const isInUse = (hosts: readonly number[]) => !sessions.canContinue(hosts) || attachments.hasOpenStdin()
  const openStreams = createOpenStreams()
  const reports = {
    spool,
    clock: coordinatorClock,
    readVitals: vitals.read,
    listeners: vitals.listeners,
    codingAgents: detector,
    onCoordinatorTime: coordinatorClock.observe,
    flushRecorders: commands.flushReports,
    openStreams,
    onOpen: upgrades.confirmBuild,
  }
  const nextReports = use(new NextReports((signal) => streamReports(reports, signal), openStreams))
  const { router } = use(
    createAgentRouter({
      exec: { ...common, startTimer: runningClock.startTimer, processes, streamDialer, recorder, stopping },
      attached: { attachments, attachDialer, log },
      terminal: { attachDialer, log, sessions, stopping },
      desktop: { desktop, viewers, stopping },
      files: { home, stateDir: realDir, credentialFiles, log, clock, transferDialer, activity },
      environment: { home, stateDir: realDir, credentialFiles, clock, log, repos, stopping },
      cloud,
      ports: { connector: createPortConnector(vitals), portDialer, activity, log },
      upgrade: { builds: upgrades.builds, buildState: upgrades.buildState, requestRestart, isInUse },
      uninstall: machine?.uninstall ?? null,
      prompts: { prompts, activity, stopping },
      broker: { detector, broker, credentialFiles },
      reports: { ...reports, nextReports },
      vitals,
    }),
  )
  const survivingCommands = [...commands.listSurviving(), ...sessions.listSurviving()]
  await spool
    .append({ type: 'agent.started', at: clock.now(), instanceId, bootId, agentVersion, survivingCommands })
    // A full disk must not make the box unreachable.
    .catch((error: unknown) => log.error({ err: error }, 'failed to record the start of the agent'))
  use(
    startTunnel({
      ...access,
      readHeaders: async () => ({
        ...(await upgrades.readHeaders()),
        ...(machine && { [LINEAGE_HEADER]: machine.lineage.ids.join(',') }),
      }),
      ...(machine && {
        readCoordinatorKey: machine.readCoordinatorKey,
        onConnected: machine.onConnected,
      }),
      onDisconnected(reason) {
        nextReports.close()
        machine?.onDisconnected(reason)
      },
      instanceId,
      router,
      log,
      clock,
      backoff: { baseMs: 500, maxMs: config.maxReconnectDelayMs },
    }),
  )
  log.info({ boxId, instanceId, url: config.coordinatorUrl, agentVersion }, 'agent started')

  const parts = cleanup.move()
  return {
    async close({ isRestart = false } = {}) {
      stopController.abort()
      // The prompts come first, because the init of the box has signalled the coding agents at the same time.
      const runsEnded = isRestart ? null : prompts.expectStop()
      await vitals.close()
      const sessionsClosed = isRestart ? sessions.close() : sessions.terminate()
      if (runsEnded !== null) {
        const { waitForExits } = commands
        await Promise.all([deliverFinalReports({ ...reports, waitForExits, log }), waitForRuns(runsEnded)])
      }
      await sessionsClosed
      await parts.disposeAsync()
    },
  }
}

const waitForRuns = (ended: Promise<void>): Promise<void> =>
  Promise.race([ended, sleep(EXITS_TIMEOUT_MS, undefined, { ref: false })])
