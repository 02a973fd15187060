// Entry point of the `boxwood` command with arguments. Without arguments, the script starts the coordinator.
import { CommanderError } from 'commander'
import { ConfigError } from '../../base/define-settings.ts'
import { StartError } from '../../base/start-error.ts'
import { createProgram } from './program.ts'

const EXIT = { failed: 1, usage: 2 } as const

/** SIGINT, SIGTERM and SIGHUP abort it. An aborted command removes its incomplete files. */
const interrupted = new AbortController()
// The default action of a second signal terminates the process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => interrupted.abort(new StartError(`Interrupted by ${signal}.`)))

try {
  await createProgram(interrupted.signal).parseAsync(process.argv.slice(2), { from: 'user' })
} catch (error) {
  process.exitCode = reportError(error)
}

/** Returns the exit code. */
function reportError(error: unknown): number {
  // commander has printed its message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage
  const isExpected = error instanceof StartError || error instanceof ConfigError
  const text = isExpected ? error.message : error instanceof Error ? error.stack : String(error)
  process.stderr.write(`boxwood: ${text}\n`)
  return error instanceof ConfigError ? EXIT.usage : EXIT.failed
}
