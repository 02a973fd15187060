// The coordinator's configuration from environment variables. All invalid variables are reported together.
import { resolve } from 'node:path'
import { z } from 'zod'
import { BOX_NETWORKS, ISOLATION_LEVELS } from '../shared/api/boxes.ts'
import { HTTP_LIMITS, LIMITS, LOG_LIMITS } from '../shared/limits.ts'
import { validationMessage } from '../shared/validation-message.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
const LOG_FORMATS = ['auto', 'pretty', 'json'] as const
const ISOLATION_CHOICES = ['auto', ...ISOLATION_LEVELS] as const
const NETWORK_CHOICES = ['auto', ...BOX_NETWORKS] as const

export type Config = {
  listen: { host: string; port: number }
  /** Absolute. */
  dataDir: string
  /** An origin without a path; null: the address at which the coordinator listens. */
  publicUrl: string | null
  /** An origin without a path; null: the address at which the coordinator listens. */
  agentUrl: string | null
  logLevel: (typeof LOG_LEVELS)[number]
  logFormat: (typeof LOG_FORMATS)[number]
  isolation: (typeof ISOLATION_CHOICES)[number]
  network: (typeof NETWORK_CHOICES)[number]
  /** Connections of clients and agents. */
  maxConnections: number
  headersTimeoutSeconds: number
  idleTimeoutSeconds: number
  /** Edge requests per second and concurrent edge requests, per key and per box. */
  edgeRate: number
  edgeConcurrency: number
  /** Concurrent event streams per key. */
  edgeStreams: number
  /** Concurrent attached connections, per key and per box. */
  edgeAttachments: number
  /** Retention of the command history: days; and per box, records and MiB of output. */
  commandDays: number
  commandRecords: number
  commandOutputMiB: number
  /** Days that a deleted box and its history stay readable. */
  deletedBoxDays: number
  /** Bytes on a box's disk: per stream of a detached process, and for all exited processes together. */
  logBytes: number
  exitedLogBytes: number
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
  context.addIssue('must be an http or https URL without a path, such as https://boxes.example.com')
  return z.NEVER
})

const oneOf = <const T extends readonly string[]>(choices: T) =>
  z.enum(choices, `must be one of ${choices.join(', ')}`)

const positiveInteger = z
  .string()
  .regex(/^[1-9]\d{0,11}$/, 'must be an integer between 1 and 999999999999')
  .transform(Number)

const timeoutSeconds = positiveInteger.refine((seconds) => seconds <= 3600, 'must be at most 3600')

type Variable = { default: string | null; shownDefault?: string; description: string; schema: z.ZodType }

/** Name → default, description and schema. docs/operation.md has the same table. */
export const VARIABLES = {
  BOXWOOD_LISTEN: {
    default: '127.0.0.1:7070',
    description: 'listen host and port; port 0 picks a free port',
    schema: listen,
  },
  BOXWOOD_DATA: {
    default: '.boxwood',
    description:
      "the directory of the database, the owner's key and the local boxes; used by one coordinator at a time",
    schema: z.string().transform((path) => resolve(path)),
  },
  BOXWOOD_PUBLIC_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    description: 'the URL at which clients reach the coordinator',
    schema: origin,
  },
  BOXWOOD_AGENT_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    description: "the URL at which the boxes' agents reach the coordinator",
    schema: origin,
  },
  BOXWOOD_LOG: {
    default: 'info',
    description: `log level of stderr: ${LOG_LEVELS.join(', ')}`,
    schema: oneOf(LOG_LEVELS),
  },
  BOXWOOD_LOG_FORMAT: {
    default: 'auto',
    description: 'pretty or json; auto is pretty on a terminal, otherwise one JSON object per line',
    schema: oneOf(LOG_FORMATS),
  },
  BOXWOOD_LOCAL_ISOLATION: {
    default: 'auto',
    description: 'bubblewrap, namespaces or process; auto picks the strongest level that works',
    schema: oneOf(ISOLATION_CHOICES),
  },
  BOXWOOD_LOCAL_NETWORK: {
    default: 'auto',
    description: 'own or host; auto gives each box its own network where that works',
    schema: oneOf(NETWORK_CHOICES),
  },
  BOXWOOD_MAX_CONNECTIONS: {
    default: String(HTTP_LIMITS.connections.default),
    description: 'open connections of clients and agents; further connections are closed immediately',
    schema: positiveInteger,
  },
  BOXWOOD_HEADERS_TIMEOUT: {
    default: String(HTTP_LIMITS.headersSeconds.default),
    description: 'seconds in which the request line and headers must arrive',
    schema: timeoutSeconds,
  },
  BOXWOOD_IDLE_TIMEOUT: {
    default: String(HTTP_LIMITS.idleSeconds.default),
    description: 'seconds after which a connection without a request is closed',
    schema: timeoutSeconds,
  },
  BOXWOOD_EDGE_RATE: {
    default: String(LIMITS.edgeRequestsPerSecond),
    description: 'edge requests per second, per key and per box',
    schema: positiveInteger,
  },
  BOXWOOD_EDGE_CONCURRENCY: {
    default: String(LIMITS.edgeConcurrency),
    description: 'concurrent edge requests, per key and per box',
    schema: positiveInteger,
  },
  BOXWOOD_EDGE_STREAMS: {
    default: String(LIMITS.streamsPerKey),
    description: 'concurrent event streams, per key',
    schema: positiveInteger,
  },
  BOXWOOD_EDGE_ATTACHMENTS: {
    default: String(LIMITS.edgeAttachments),
    description: 'concurrent attached commands and terminals, per key and per box',
    schema: positiveInteger,
  },
  BOXWOOD_DELETED_BOX_DAYS: {
    default: '30',
    description: 'days that a deleted box and its history stay readable',
    schema: positiveInteger,
  },
  BOXWOOD_COMMAND_RETENTION_DAYS: {
    default: '30',
    description: 'days that a command stays in the history',
    schema: positiveInteger,
  },
  BOXWOOD_COMMAND_RECORDS: {
    default: '10000',
    description: 'commands in the history of a box; the oldest are deleted first',
    schema: positiveInteger,
  },
  BOXWOOD_COMMAND_OUTPUT_MIB: {
    default: '256',
    description: 'MiB of output in the history of a box; output of the oldest commands is deleted first',
    schema: positiveInteger,
  },
  BOXWOOD_LOG_BYTES: {
    default: String(LOG_LIMITS.stream.default),
    description:
      'bytes on the disk of a box per stream of a detached process; the oldest output is discarded first',
    schema: positiveInteger.refine(
      (bytes) => bytes >= LOG_LIMITS.stream.min,
      `must be at least ${LOG_LIMITS.stream.min}`,
    ),
  },
  BOXWOOD_EXITED_LOG_BYTES: {
    default: String(LOG_LIMITS.exitedProcesses.default),
    description:
      'bytes on the disk of a box for the output of all exited detached processes; the oldest are deleted first',
    schema: positiveInteger,
  },
} as const satisfies Record<string, Variable>

type Name = keyof typeof VARIABLES

/** The message has one line per invalid variable. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Throws ConfigError. An empty variable counts as not set. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = []
  function read<N extends Name>(name: N): z.output<(typeof VARIABLES)[N]['schema']> | null {
    const { default: fallback, schema } = VARIABLES[name]
    const text = env[name] || fallback
    if (text === null) return null
    const result = schema.safeParse(text)
    if (result.success) return result.data as z.output<(typeof VARIABLES)[N]['schema']>
    problems.push(`${validationMessage(result.error.issues, name)}; it is ${JSON.stringify(text)}.`)
    return null
  }
  const config = {
    listen: read('BOXWOOD_LISTEN'),
    dataDir: read('BOXWOOD_DATA'),
    publicUrl: read('BOXWOOD_PUBLIC_URL'),
    agentUrl: read('BOXWOOD_AGENT_URL'),
    logLevel: read('BOXWOOD_LOG'),
    logFormat: read('BOXWOOD_LOG_FORMAT'),
    isolation: read('BOXWOOD_LOCAL_ISOLATION'),
    network: read('BOXWOOD_LOCAL_NETWORK'),
    maxConnections: read('BOXWOOD_MAX_CONNECTIONS'),
    headersTimeoutSeconds: read('BOXWOOD_HEADERS_TIMEOUT'),
    idleTimeoutSeconds: read('BOXWOOD_IDLE_TIMEOUT'),
    edgeRate: read('BOXWOOD_EDGE_RATE'),
    edgeConcurrency: read('BOXWOOD_EDGE_CONCURRENCY'),
    edgeStreams: read('BOXWOOD_EDGE_STREAMS'),
    edgeAttachments: read('BOXWOOD_EDGE_ATTACHMENTS'),
    deletedBoxDays: read('BOXWOOD_DELETED_BOX_DAYS'),
    commandDays: read('BOXWOOD_COMMAND_RETENTION_DAYS'),
    commandRecords: read('BOXWOOD_COMMAND_RECORDS'),
    commandOutputMiB: read('BOXWOOD_COMMAND_OUTPUT_MIB'),
    logBytes: read('BOXWOOD_LOG_BYTES'),
    exitedLogBytes: read('BOXWOOD_EXITED_LOG_BYTES'),
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return config as Config
}
