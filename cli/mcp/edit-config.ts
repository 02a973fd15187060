// Changes the entry of this server in the text of a configuration, and nothing else.
import { isDeepStrictEqual } from 'node:util'
import { parse, stringify } from 'smol-toml'
import { type Host, SERVER_NAME } from './hosts.ts'

type Fields = Record<string, unknown>

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The text has something that this program cannot keep. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** The entry of the server. undefined: there is none. @throws ConfigError */
export const findEntry = (host: Host, text: string): Fields | undefined => {
  const servers = getServers(parseConfig(host, text), host.path)
  const entry = servers?.[SERVER_NAME]
  return isRecord(entry) ? entry : undefined
}

/** @throws ConfigError for a text that is not valid, or whose comments would be lost */
export function setEntry(host: Host, text: string, entry: Fields): string {
  const config = parseConfig(host, text)
  const changed = withEntry(config, host.path, entry)
  if (host.format === 'json') return `${JSON.stringify(changed, null, 2)}\n`
  const [table = ''] = host.path
  const rest = removeTables(text, `${table}.${SERVER_NAME}`).trimEnd()
  const section = stringify({ [table]: { [SERVER_NAME]: entry } }).replace(`[${table}]\n`, '')
  const result = `${rest}${rest === '' ? '' : '\n\n'}${section.trim()}\n`
  // The text is edited line by line: forms such as inline tables are not found.
  if (!isDeepStrictEqual(toPlain(parseConfig(host, result)), toPlain(changed)))
    throw new ConfigError('it has the servers in an unusual form')
  return result
}

/** The entry alone, for a person who adds it. */
export function formatEntry(host: Host, entry: Fields): string {
  return setEntry(host, '', entry)
}

function parseConfig({ format }: Host, text: string): Fields {
  if (text.trim() === '') return {}
  try {
    const config: unknown = format === 'json' ? JSON.parse(text) : parse(text)
    if (isRecord(config)) return config
  } catch {
    // Thrown below.
  }
  throw new ConfigError(format === 'json' ? 'it has comments, or is not valid JSON' : 'it is not valid TOML')
}

function getServers(config: Fields, path: readonly string[]): Fields | undefined {
  const servers = path.reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), config)
  return isRecord(servers) ? servers : undefined
}

function withEntry(config: Fields, [name, ...rest]: readonly string[], entry: Fields): Fields {
  if (name === undefined) return { ...config, [SERVER_NAME]: entry }
  const value = config[name] ?? {}
  if (!isRecord(value)) throw new ConfigError(`its field ${name} has an unusual form`)
  return { ...config, [name]: withEntry(value, rest, entry) }
}

/** Removes a table of TOML with its subtables. */
function removeTables(text: string, name: string): string {
  let isRemoved = false
  return text
    .split('\n')
    .filter((line) => {
      const header = /^\s*\[\[?\s*([^\]]+?)\s*\]/.exec(line)?.[1]
      if (header !== undefined) isRemoved = header === name || header.startsWith(`${name}.`)
      return !isRemoved
    })
    .join('\n')
}

/** smol-toml creates objects without a prototype. */
const toPlain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
