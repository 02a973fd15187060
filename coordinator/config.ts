// The coordinator's configuration: environment variables, each with a default, all wrong ones reported at once.
import { resolve } from 'node:path'
import { z } from 'zod'
import { ISOLATION_LEVELS } from '../shared/api/boxes.ts'
import { LIMITS, LOG_LIMITS } from '../shared/limits.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
const ISOLATION_CHOICES = ['auto', ...ISOLATION_LEVELS] as const

export type Config = {
  listen: { host: string; port: number }
  /** Absolute. */
  dataDir: string
  /** An origin without a path; null: where the coordinator listens. */
  publicUrl: string | null
  /** An origin without a path; null: where the coordinator listens. */
  agentUrl: string | null
  logLevel: (typeof LOG_LEVELS)[number]
  isolation: (typeof ISOLATION_CHOICES)[number]
  /** Edge requests a second, and at once: for each key and for each box. */
  edgeRate: number
  edgeConcurrency: number
  /** Streams at once, for each key. */
  edgeStreams: number
  /** Of the command history: days, and of each box records and MiB of output. */
  commandDays: number
  commandRecords: number
  commandOutputMiB: number
  /** Bytes that a box keeps: of each stream of a detached command, and of all that have ended together. */
  logBytes: number
  endedLogBytes: number
}

/** host:port, with an IPv6 address in brackets. */
const ADDRESS = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^\s:[\]/@]+)):(?<port>\d{1,5})$/

const listen = z.string().transform((text, context) => {
  const { v6, host = v6, port } = ADDRESS.exec(text)?.groups ?? {}
  if (host !== undefined && Number(port) <= 65_535) return { host, port: Number(port) }
  context.addIssue('must be host:port, such as 127.0.0.1:7070 or [::1]:7070')
  return z.NEVER
})

const origin = z.string().transform((text, context) => {
  const url = URL.parse(text)
  const bare = url && `${url.protocol}//${url.host}`
  if (url && /^https?:$/.test(url.protocol) && (text === bare || text === `${bare}/`)) return bare
  context.addIssue('must be an http or https address without a path, such as https://boxes.example.com')
  return z.NEVER
})

const oneOf = <const T extends readonly string[]>(choices: T) =>
  z.enum(choices, `must be one of ${choices.join(', ')}`)

const count = z
  .string()
  .regex(/^[1-9]\d{0,11}$/, 'must be a whole number from 1 on')
  .transform(Number)

type Variable = { default: string | null; shownDefault?: string; meaning: string; schema: z.ZodType }

/** Name → default, meaning and rule. README shows this table. */
export const VARIABLES = {
  BOXWOOD_LISTEN: {
    default: '127.0.0.1:7070',
    meaning: 'host and port; port 0 takes a free one',
    schema: listen,
  },
  BOXWOOD_DATA: {
    default: '.boxwood',
    meaning: "the folder with the database, the owner's key and the local boxes; one coordinator at a time",
    schema: z.string().transform((path) => resolve(path)),
  },
  BOXWOOD_PUBLIC_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    meaning: 'where clients reach it',
    schema: origin,
  },
  BOXWOOD_AGENT_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    meaning: "where the boxes' agents reach it",
    schema: origin,
  },
  BOXWOOD_LOG: {
    default: 'info',
    meaning: `how much goes to stderr: ${LOG_LEVELS.join(', ')}`,
    schema: oneOf(LOG_LEVELS),
  },
  BOXWOOD_LOCAL_ISOLATION: {
    default: 'auto',
    meaning: 'bubblewrap, namespaces or process instead of the best that works',
    schema: oneOf(ISOLATION_CHOICES),
  },
  BOXWOOD_EDGE_RATE: {
    default: String(LIMITS.edgeRequestsPerSecond),
    meaning: 'edge requests a second, per key and per box',
    schema: count,
  },
  BOXWOOD_EDGE_CONCURRENCY: {
    default: String(LIMITS.edgeConcurrency),
    meaning: 'edge requests at once, per key and per box',
    schema: count,
  },
  BOXWOOD_EDGE_STREAMS: {
    default: String(LIMITS.streamsPerToken),
    meaning: 'followed commands at once, per key',
    schema: count,
  },
  BOXWOOD_COMMAND_RETENTION_DAYS: {
    default: '30',
    meaning: 'how long a command stays in the history',
    schema: count,
  },
  BOXWOOD_COMMAND_RECORDS: {
    default: '10000',
    meaning: 'commands in the history of a box; the oldest go first',
    schema: count,
  },
  BOXWOOD_COMMAND_OUTPUT_MIB: {
    default: '256',
    meaning: 'output in the history of a box, in MiB; that of its oldest commands goes first',
    schema: count,
  },
  BOXWOOD_LOG_BYTES: {
    default: String(LOG_LIMITS.stream.default),
    meaning: 'bytes on the disk of a box for each stream of a detached command; its oldest output goes first',
    schema: count.refine(
      (bytes) => bytes >= LOG_LIMITS.stream.min,
      `must be at least ${LOG_LIMITS.stream.min}`,
    ),
  },
  BOXWOOD_ENDED_LOG_BYTES: {
    default: String(LOG_LIMITS.ended.default),
    meaning:
      'bytes on the disk of a box for the output of detached commands that have ended; the oldest go first',
    schema: count,
  },
} as const satisfies Record<string, Variable>

type Name = keyof typeof VARIABLES

/** The message has one line for each variable that is wrong. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Throws ConfigError. A variable that is empty counts as not set. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = []
  function read<N extends Name>(name: N): z.output<(typeof VARIABLES)[N]['schema']> | null {
    const { default: fallback, schema } = VARIABLES[name]
    const text = env[name] || fallback
    if (text === null) return null
    const result = schema.safeParse(text)
    if (result.success) return result.data as z.output<(typeof VARIABLES)[N]['schema']>
    problems.push(`${name} ${result.error.issues[0]?.message}; it is ${JSON.stringify(text)}.`)
    return null
  }
  const config = {
    listen: read('BOXWOOD_LISTEN'),
    dataDir: read('BOXWOOD_DATA'),
    publicUrl: read('BOXWOOD_PUBLIC_URL'),
    agentUrl: read('BOXWOOD_AGENT_URL'),
    logLevel: read('BOXWOOD_LOG'),
    isolation: read('BOXWOOD_LOCAL_ISOLATION'),
    edgeRate: read('BOXWOOD_EDGE_RATE'),
    edgeConcurrency: read('BOXWOOD_EDGE_CONCURRENCY'),
    edgeStreams: read('BOXWOOD_EDGE_STREAMS'),
    commandDays: read('BOXWOOD_COMMAND_RETENTION_DAYS'),
    commandRecords: read('BOXWOOD_COMMAND_RECORDS'),
    commandOutputMiB: read('BOXWOOD_COMMAND_OUTPUT_MIB'),
    logBytes: read('BOXWOOD_LOG_BYTES'),
    endedLogBytes: read('BOXWOOD_ENDED_LOG_BYTES'),
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return config as Config
}
