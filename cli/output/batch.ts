// Commands that take several boxes or snapshots: each one is tried, and the exit code is that of the first failure.
import { CliError, EXIT } from './exit-codes.ts'
import { sanitize } from './print.ts'
import { printError } from './print-error.ts'

/** A name that the user typed, a box, or a snapshot. */
type Item = string | { hostname: string } | { name: string }

const getName = (item: Item): string =>
  typeof item === 'string' ? item : 'hostname' in item ? item.hostname : item.name

export type Batch = {
  /** Runs `action` for each item in turn and returns the results. Prints the error of a failed item and omits the item. */
  run<T extends Item, R>(items: readonly T[], action: (item: T) => Promise<R>): Promise<R[]>
  /** That of the first failure, else 0. */
  readonly exitCode: number
}

/** With one name, errors are thrown instead of printed. */
export function startBatch(names: readonly string[]): Batch {
  let exitCode: number = EXIT.ok
  return {
    async run(items, action) {
      const results = []
      for (const item of items) {
        try {
          results.push(await action(item))
        } catch (error) {
          if (!(error instanceof CliError) || names.length === 1 || concernsAll(error, getName(item)))
            throw error
          printError(addName(error, getName(item)))
          exitCode ||= error.exitCode
        }
      }
      return results
    },
    get exitCode() {
      return exitCode
    },
  }
}

/**
 * The error would occur again for the next item: also one about the box whose files or processes the items are. A signal
 * aborts with an empty message.
 */
const concernsAll = ({ exitCode, code, message }: CliError, name: string): boolean =>
  exitCode === EXIT.unreachable ||
  exitCode === EXIT.notAuthenticated ||
  message === '' ||
  (code === 'no_such_box' && !message.includes(`'${sanitize(name)}'`))

/** Messages of the API do not name the box. */
function addName(error: CliError, name: string): CliError {
  const { exitCode, message, code } = error
  if (message.includes(name)) return error
  return new CliError(exitCode, `${sanitize(name)}: ${message}`, {
    ...(code !== null && { code }),
    cause: error,
  })
}
