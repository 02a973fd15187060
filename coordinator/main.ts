// The coordinator as a program: starts it, says where it is, and stops it as the signal asks.
import { type Coordinator, startCoordinator } from './app.ts'
import { type Config, ConfigError, loadConfig } from './config.ts'
import { greeting } from './greeting.ts'
import { StartError } from './start-error.ts'

const EXIT = { failed: 1, badConfig: 2 } as const
/** How long requests under way may still take after SIGTERM. */
const DRAIN_MS = 10_000
/** npm passes on the signal that the terminal has sent to us already: this soon after the first it is the same one. */
const SAME_SIGNAL_MS = 500

/** A terminal or pipe that is gone must not end the coordinator. */
process.stdout.on('error', () => undefined)
const say = (text: string) => void process.stdout.write(`${text}\n`)

function fail(error: unknown): never {
  const expected = error instanceof StartError || error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : error instanceof Error ? error.stack : error}\n`)
  process.exit(error instanceof ConfigError ? EXIT.badConfig : EXIT.failed)
}

function configuration(): Config {
  try {
    return loadConfig(process.env)
  } catch (error) {
    return fail(error)
  }
}

async function terminate(coordinator: Coordinator): Promise<void> {
  say('Stopping. The boxes run on.')
  await coordinator.drain(DRAIN_MS)
}

async function interrupt(coordinator: Coordinator): Promise<void> {
  say('Suspending the boxes of this machine; the next start brings them back. Ctrl-C again to leave at once.')
  const names = await coordinator.suspendBoxes('the coordinator was stopped with Ctrl-C')
  say(names.length === 0 ? 'No box was running.' : `Suspended: ${names.sort().join(', ')}.`)
}

/** A signal during the start waits for it. */
function stopOnSignals(starting: Promise<Coordinator>): void {
  let stoppingSince: number | undefined
  async function stop(how: (coordinator: Coordinator) => Promise<void>): Promise<void> {
    stoppingSince = performance.now()
    const coordinator = await starting
    await how(coordinator)
    await coordinator.close()
    process.exit(0)
  }
  process.on('SIGINT', () => {
    if (stoppingSince === undefined) stop(interrupt).catch(fail)
    else if (performance.now() - stoppingSince > SAME_SIGNAL_MS) process.exit(EXIT.failed)
  })
  for (const signal of ['SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (stoppingSince === undefined) stop(terminate).catch(fail)
    })
}

const config = configuration()
const starting = startCoordinator(config)
stopOnSignals(starting)
starting.then(greeting).then(say).catch(fail)
