// Finds an item by a unique prefix of its id, as git and docker do.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type PrefixOptions<T> = {
  getId(item: T): string
  /** What the id identifies, such as its name or command. */
  describe(item: T): string
  /** Plural, such as "processes of fig". */
  kind: string
}

/** The code of the CliError for an ambiguous prefix. */
export const AMBIGUOUS_ID = 'ambiguous_id'

const MAX_LISTED = 10
const MAX_DESCRIPTION_LENGTH = 60

/** An id equal to `prefix` wins. @throws CliError when several ids match */
export function findByPrefix<T>(
  items: readonly T[],
  prefix: string,
  { getId, describe, kind }: PrefixOptions<T>,
): T | undefined {
  const matches = items.filter((item) => getId(item).startsWith(prefix))
  const exact = matches.find((item) => getId(item) === prefix)
  if (exact !== undefined || matches.length < 2) return exact ?? matches[0]
  const lines = matches
    .slice(0, MAX_LISTED)
    .map(
      (item) => `\n  ${sanitize(getId(item))}  ${sanitize(describe(item)).slice(0, MAX_DESCRIPTION_LENGTH)}`,
    )
  const more = matches.length > MAX_LISTED ? '\n  …' : ''
  throw new CliError(
    EXIT.usage,
    `'${sanitize(prefix)}' matches ${matches.length} ${kind}. Type more characters:${lines.join('')}${more}`,
    { code: AMBIGUOUS_ID },
  )
}
