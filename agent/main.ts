// Entry point of the agent, the daemon on a box. Configuration: see config.ts.
import { writeSync } from 'node:fs'
import { pino } from 'pino'
import { createLogDestination } from '../shared/log-destination.ts'
import { type Exit, reportExit, STRAY_SIGNALS } from '../shared/report-exit.ts'
import { startAgent } from './agent.ts'
import { readConfig } from './config.ts'
import { hideOwnLibraries } from './own-libraries.ts'
import { waitForBox } from './standby.ts'

/** Longer than the grace period between SIGTERM and SIGKILL of a running command. */
const STOP_TIMEOUT_MS = 8000

/** fail() must exit also when its message cannot be written. */
process.stderr.on('error', () => undefined)

/** Until the log is open, fail() and Node print the reason. */
let writeExit: (exit: Exit) => void = () => undefined
const exitReport = reportExit((exit) => writeExit(exit))

function fail(error: unknown): never {
  exitReport.setReason(error instanceof Error ? error.message : String(error))
  process.stderr.write(`boxwood agent: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

async function main(): Promise<void> {
  hideOwnLibraries()
  await waitForBox(process.env)
  const config = readConfig(process.env)
  const log = pino(
    { level: config.logLevel, base: { box: config.boxId } },
    createLogDestination((bytes) => writeSync(2, bytes)),
  )
  writeExit = (exit) => log[exit.exitCode === 0 ? 'info' : 'fatal'](exit, 'the agent exits')
  let stopping = false
  const stop = (reason: string, isRestart = false) => {
    if (stopping) return
    stopping = true
    exitReport.setReason(reason)
    log.info({ reason }, 'agent stopping')
    setTimeout(() => {
      log.error('agent did not stop in time; exiting')
      exitReport.setReason(`${reason}; it did not stop in time`)
      process.exit(1)
    }, STOP_TIMEOUT_MS).unref()
    started.then((agent) => agent.close({ isRestart })).then(() => log.info('agent stopped'), fail)
  }
  const started = startAgent(config, log, process.env, () =>
    stop('the coordinator requested a restart', true),
  )
  // The handlers are added before the start has completed: a signal during the start stops the agent after it. SIGTERM ends
  // terminal sessions, because the box or the machine stops. SIGHUP does not, because the next agent follows immediately.
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  for (const signal of ['SIGHUP', ...STRAY_SIGNALS] as const) process.on(signal, () => stop(signal, true))
  await started
}

main().catch(fail)
