// The agent put together: its app, its spool of reports and its tunnel, in the order they start and stop.
import { randomUUID } from 'node:crypto'
import { chmod, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { systemClock } from '../shared/clock.ts'
import { AGENT_VERSION } from '../shared/protocol.ts'
import { buildAgentApp } from './app.ts'
import { type AgentConfig, readToken, readUrl } from './config.ts'
import { openDetachedProcesses } from './exec/detached/processes.ts'
import { recordDetached } from './exec/history/detached.ts'
import { createSyncRecorder } from './exec/history/sync.ts'
import { execRoutes } from './exec/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { lockFolder } from './lock.ts'
import { reportRoutes } from './reports/routes.ts'
import { openSpool } from './reports/spool.ts'
import { openState } from './state.ts'
import { createStreamDialer } from './tunnel/stream-dialer.ts'
import { createTransferDialer } from './tunnel/transfer-dialer.ts'
import { startTunnel } from './tunnel/tunnel.ts'
import { createActivity } from './vitals/activity.ts'
import { createVitalsSampler } from './vitals/sample.ts'

export type Agent = {
  /** Ends what runs for a caller, leaves the coordinator, and resolves when nothing is left. */
  close(): Promise<void>
}

/** Throws when another agent holds the state folder or the folder cannot be used. */
export async function startAgent(
  config: AgentConfig,
  log: Logger,
  env: Record<string, string | undefined>,
): Promise<Agent> {
  const { url, boxId, stateDir, home, spawner, runner, logBytes, retention } = config
  const clock = systemClock
  const instanceId = randomUUID()
  await mkdir(stateDir, { recursive: true, mode: 0o700 })
  const lock = await lockFolder(stateDir)
  const state = await openState(stateDir, log)
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const spool = await openSpool({ folder: join(stateDir, 'reports'), state, log, bootId })

  const activity = createActivity(clock)
  const processes = await openDetachedProcesses({
    folder: join(stateDir, 'exec'),
    ...{ home, clock, log, activity, env, spawner, runner, logBytes, retention, bootId },
  })
  const recorder = createSyncRecorder(spool, log)
  const detachedRecorder = recordDetached({ processes, spool, log, bootId })
  const sampler = createVitalsSampler({ home, clock, activity, env })
  const token = () => readToken(stateDir)
  const address = () => readUrl(stateDir, url)
  const coordinator = { boxId, readUrl: address, readToken: token }
  const transfers = createTransferDialer(coordinator)
  const streams = createStreamDialer(coordinator)
  const exec = { home, log, clock, activity, env, spawner, processes, recorder, streams }
  const app = buildAgentApp({
    log,
    routes: [
      (scope) => execRoutes(scope, exec),
      (scope) => {
        scope.addHook('onRequest', async () => activity.touch())
        return fileRoutes(scope, { home, log, clock, transfers })
      },
      (scope) => reportRoutes(scope, { spool, clock, log, vitals: () => sampler.sample() }),
    ],
  })
  await app.ready()
  if (config.socket !== null) {
    // The lock is ours, so a socket that is there was left behind.
    await rm(config.socket, { force: true })
    await app.listen({ path: config.socket })
    await chmod(config.socket, 0o600)
  }

  await spool
    .append({ type: 'agent.started', at: clock.now(), instanceId, bootId, agentVersion: AGENT_VERSION })
    // A full disk must not keep the box from being reached.
    .catch((error: unknown) => log.error({ err: error }, 'the start could not be recorded'))
  const tunnel = startTunnel({
    boxId,
    readUrl: address,
    readToken: token,
    instanceId,
    server: app.server,
    log,
    clock,
    backoff: { baseMs: 500, maxMs: config.reconnectMaxMs },
  })
  log.info({ boxId, instanceId, url, agentVersion: AGENT_VERSION }, 'agent started')

  return {
    async close() {
      await tunnel.close()
      streams.close()
      await app.close()
      recorder.close()
      await detachedRecorder.close()
      await processes.close()
      await spool.close()
      await lock.release()
    },
  }
}
