// The error for a name that does not exist, with similar names.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { suggestNames } from './similar-names.ts'

type NoSuchName = {
  /** Such as `box`. */
  kind: string
  typed: string
  /** The names that exist. */
  names: readonly string[]
  /** A sentence that says what to do. */
  advice: string
  code: string
}

export class NoSuchNameError extends CliError {
  readonly kind: string
  readonly typed: string
  readonly names: readonly string[]

  constructor({ kind, typed, names, advice, code }: NoSuchName) {
    super(EXIT.notFound, `No such ${kind}: '${sanitize(typed)}'.${suggestNames(typed, names)} ${advice}`, {
      code,
    })
    this.name = 'NoSuchNameError'
    this.kind = kind
    this.typed = typed
    this.names = names
  }
}
