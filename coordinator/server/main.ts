// The coordinator's entry point: starts it, prints the startup banner and stops it on signals.
import { writeSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import type { ReadyMessage } from '../../shared/coordinator-process.ts'
import { type Exit, reportExit, STRAY_SIGNALS } from '../../shared/report-exit.ts'
import { ConfigError } from '../base/define-settings.ts'
import { withDataDirectory } from '../base/project-directory.ts'
import { StartError } from '../base/start-error.ts'
import { storeSettings, withStoredSettings } from '../base/stored-settings.ts'
import { type EngineReport, probeEngines } from '../providers/probe-engines.ts'
import { type Coordinator, startCoordinator } from './app.ts'
import { formatBoxCommand } from './box-command.ts'
import { type Config, loadConfig } from './config.ts'
import { createDashboardLink } from './dashboard-link.ts'
import { closeInheritedDescriptors } from './inherited-descriptors.ts'
import { createStartupBanner, describeEngines, describeMachines, suggestCommand } from './startup-banner.ts'
import { wrapText } from './wrap-text.ts'

const EXIT = { failed: 1, badConfig: 2 } as const
/** Time for requests in flight after SIGTERM. */
const DRAIN_MS = 10_000
/**
 * On Ctrl-C the terminal sends SIGINT to npm and to this process, and npm forwards the SIGINT that it receives. A second
 * signal within this time is the forwarded one.
 */
const FORWARDED_SIGNAL_MS = 500
const PROGRESS_INTERVAL_MS = 5_000

closeInheritedDescriptors()
/** A closed terminal or pipe, or a full disk, must not stop the coordinator. */
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)
const print = (text: string) => void process.stdout.write(`${text}\n`)

/** Until the log is open, a line of JSON, except on a terminal: fail() prints the reason. */
let writeExit = (exit: Exit): void => {
  if (process.stderr.isTTY) return
  const line = { level: exit.exitCode === 0 ? 30 : 60, time: Date.now(), pid: process.pid, ...exit }
  writeSync(process.stderr.fd, `${JSON.stringify({ ...line, msg: EXITS })}\n`)
}
const EXITS = 'the coordinator exits'
const exitReport = reportExit((exit) => {
  try {
    writeExit(exit)
  } catch {
    // stderr is a closed pipe, or its disk is full.
  }
})

function fail(error: unknown): never {
  const isExpected = error instanceof StartError || error instanceof ConfigError
  exitReport.setReason(error instanceof Error ? error.message : String(error))
  // The message below is the last line.
  if (isExpected) writeExit = () => undefined
  process.stderr.write(`${isExpected ? error.message : error instanceof Error ? error.stack : error}\n`)
  process.exit(error instanceof ConfigError ? EXIT.badConfig : EXIT.failed)
}

/** @returns isRemembered: the address is that of an earlier start */
function readConfig(): { config: Config; isRemembered: boolean } {
  try {
    const env = withStoredSettings(withDataDirectory(process.env, process.cwd()))
    // The socket of a service manager has its own address.
    const isRemembered = !process.env.BOXWOOD_LISTEN && !!env.BOXWOOD_LISTEN && !process.env.LISTEN_FDS
    return { config: loadConfig(env), isRemembered }
  } catch (error) {
    return fail(error)
  }
}

async function terminate(coordinator: Coordinator): Promise<void> {
  print('Stopping. The boxes keep running. A second signal exits immediately.')
  await coordinator.drain(DRAIN_MS)
}

async function interrupt(coordinator: Coordinator): Promise<void> {
  print(
    'Suspending the boxes on this machine; the next start wakes them. Press Ctrl-C again to exit immediately.',
  )
  const { suspended, failed } = await coordinator.suspendBoxes('the coordinator was stopped')
  print(suspended.length === 0 ? 'No box was suspended.' : `Suspended: ${suspended.join(', ')}.`)
  const stopCommand = `${formatBoxCommand(coordinator.dataDirectory.dir)} down`
  if (failed.length > 0)
    print(`These boxes were not stopped: ${failed.join(', ')}. Stop them with \`${stopCommand}\`.`)
}

/** Notifies the process that started this one with an IPC channel, such as `box up`. */
async function sendReadyMessage(
  coordinator: Coordinator,
  engines: readonly EngineReport[],
  link: string | null,
): Promise<void> {
  if (!process.send) return
  const message: ReadyMessage = {
    url: coordinator.url,
    machines: describeMachines(coordinator),
    engines: describeEngines(coordinator, engines),
    signInLink: link,
    suggestedCommand: await suggestCommand(coordinator),
  }
  // The other process may have exited.
  process.send(message, () => {
    if (process.connected) process.disconnect()
  })
}

/** Prints what a start does that takes long. The process that has started this one waits in silence, and shows the output on a failure. */
function reportProgress(): { setStep(step: string): void; end(): void } {
  let step = 'reading the configuration'
  if (process.send) return { setStep: () => undefined, end: () => undefined }
  const timer = setInterval(() => print(`Still starting: ${step}.`), PROGRESS_INTERVAL_MS).unref()
  return {
    setStep(next) {
      step = next
    },
    end: () => clearInterval(timer),
  }
}

/** A full disk must not stop the coordinator. */
async function rememberSettings({ dataDirectory, context }: Coordinator): Promise<void> {
  try {
    await storeSettings(dataDirectory.dir, process.env)
  } catch (error) {
    context.log.warn({ err: error }, 'the settings were not stored: the next start does not use them')
  }
}

async function reportReady(coordinator: Coordinator): Promise<void> {
  // Engines that have not answered during the start are omitted.
  const engines = await Promise.race([probing, setImmediate([])])
  const link = await createDashboardLink(coordinator)
  const banner = await createStartupBanner(coordinator, undefined, {
    isRemembered,
    engines,
    // The process that has started this one prints the link, and a journal is kept and forwarded.
    link: process.send || process.env.JOURNAL_STREAM ? null : link,
  })
  // On a terminal the banner stands between lines of the log.
  print(process.stdout.isTTY ? `\n${wrapText(banner, process.stdout.columns)}` : banner)
  await sendReadyMessage(coordinator, engines, link)
  await rememberSettings(coordinator)
}

/**
 * The first signal stops the coordinator, a second one exits immediately. A signal during the start takes effect when the
 * start is complete.
 */
function stopOnSignals(starting: Promise<Coordinator>): void {
  let stoppingSince: number | undefined
  async function stop(prepare: (coordinator: Coordinator) => Promise<void>): Promise<void> {
    const coordinator = await starting
    try {
      await prepare(coordinator)
    } finally {
      await coordinator.close()
    }
    process.exit(0)
  }
  const stopOn = (signal: NodeJS.Signals, prepare: (coordinator: Coordinator) => Promise<void>) =>
    process.on(signal, () => {
      if (stoppingSince === undefined) {
        stoppingSince = performance.now()
        exitReport.setReason(signal)
        starting.then(({ context }) => context.log.info({ signal }, 'stopping')).catch(() => undefined)
        stop(prepare).catch(fail)
      } else if (performance.now() - stoppingSince > FORWARDED_SIGNAL_MS) {
        exitReport.setReason(`a second signal: ${signal}`)
        process.exit(EXIT.failed)
      }
    })
  stopOn('SIGINT', interrupt)
  for (const signal of ['SIGTERM', 'SIGHUP', ...STRAY_SIGNALS] as const) stopOn(signal, terminate)
}

async function stopOnFailure(coordinator: Coordinator): Promise<void> {
  const error = await coordinator.failure
  await coordinator.close()
  fail(new StartError(`${error.message} The boxes keep running.`))
}

const { config, isRemembered } = readConfig()
const probing = probeEngines({ config, env: process.env })
const progress = reportProgress()
const starting = startCoordinator(config, { onStep: progress.setStep })
starting.finally(progress.end).catch(() => undefined)
stopOnSignals(starting)
starting
  .then(({ context }) => {
    writeExit = (exit) => context.log[exit.exitCode === 0 ? 'info' : 'fatal'](exit, EXITS)
  })
  .catch(() => undefined)
starting.then(reportReady).catch(fail)
starting.then(stopOnFailure).catch(fail)
