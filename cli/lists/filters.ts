// --filter KEY=VALUE of the list commands. Values of one key are alternatives; different keys must all match.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type FilterKey<Row> = {
  /** null matches no value. */
  get(row: Row): string | null
  /** The valid values, which are compared as a whole. Without it, the value is a pattern. */
  values?: readonly string[]
}
export type Filters<Row> = Record<string, FilterKey<Row>>

/** The values of each key, in the order of the options. */
export type FilterValues = Map<string, string[]>

/** A parser for commander: collects repeated options. @throws CliError for an unknown key or value */
export const createFilterParser =
  (filters: Filters<never>) =>
  (text: string, previous: FilterValues = new Map()): FilterValues => {
    const separator = text.indexOf('=')
    const key = text.slice(0, separator)
    const value = text.slice(separator + 1)
    if (separator < 1) throw new CliError(EXIT.usage, `--filter must be KEY=VALUE. ${formatKeys(filters)}`)
    if (!Object.hasOwn(filters, key))
      throw new CliError(EXIT.usage, `Unknown filter '${sanitize(key)}'. ${formatKeys(filters)}`)
    const values = filters[key]?.values
    if (values !== undefined && !values.includes(value))
      throw new CliError(
        EXIT.usage,
        `Unknown ${key} '${sanitize(value)}'. Valid values: ${values.join(', ')}.`,
      )
    return new Map(previous).set(key, [...(previous.get(key) ?? []), value])
  }

const formatKeys = (filters: Filters<never>): string => `Valid keys: ${Object.keys(filters).join(', ')}.`

export function createMatcher<Row>(filters: Filters<Row>, selected: FilterValues): (row: Row) => boolean {
  const tests = [...selected].map(([key, alternatives]) => {
    const { get, values } = filters[key] as FilterKey<Row>
    const matchers = alternatives.map((value) =>
      values === undefined ? createPatternMatcher(value) : (text: string) => text === value,
    )
    return (row: Row) => {
      const text = get(row)
      return text !== null && matchers.some((matches) => matches(text))
    }
  })
  return (row) => tests.every((test) => test(row))
}

/** A pattern with * or ? matches the whole text; any other text matches a part of it. Ignores case. */
export function createPatternMatcher(pattern: string): (text: string) => boolean {
  if (!/[*?]/.test(pattern)) {
    const part = pattern.toLowerCase()
    return (text) => text.toLowerCase().includes(part)
  }
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.')
  const regExp = new RegExp(`^${source}$`, 'isu')
  return (text) => regExp.test(text)
}
