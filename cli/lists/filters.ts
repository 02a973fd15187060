// --filter KEY=VALUE of the list commands. Values of one key are alternatives; different keys must all match.
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export type FilterKey<Row> = {
  /** null matches no value. A row that returns several texts matches when one of them does. */
  get(row: Row): string | null | readonly string[]
  /** The valid values, which are compared as a whole. Without it, the value is a pattern. */
  values?: readonly string[]
  /** Returns the test of a value that is not a pattern. @throws CliError for a value that is not valid */
  createMatcher?(value: string): (text: string) => boolean
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
    filters[key]?.createMatcher?.(value)
    return new Map(previous).set(key, [...(previous.get(key) ?? []), value])
  }

const formatKeys = (filters: Filters<never>): string => `Valid keys: ${Object.keys(filters).join(', ')}.`

export function createMatcher<Row>(filters: Filters<Row>, selected: FilterValues): (row: Row) => boolean {
  const tests = [...selected].map(([key, alternatives]) => {
    const { get, ...filter } = filters[key] as FilterKey<Row>
    const matchers = alternatives.map((value) => createValueMatcher(filter, value))
    return (row: Row) => {
      const texts = [get(row) ?? []].flat()
      return texts.some((text) => matchers.some((matches) => matches(text)))
    }
  })
  return (row) => tests.every((test) => test(row))
}

function createValueMatcher(
  { values, createMatcher }: Omit<FilterKey<never>, 'get'>,
  value: string,
): (text: string) => boolean {
  if (createMatcher !== undefined) return createMatcher(value)
  return values === undefined ? createPatternMatcher(value) : (text) => text === value
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
