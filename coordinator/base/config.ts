// The coordinator's configuration from environment variables. All invalid variables are reported together.
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { BOX_NETWORKS, ISOLATION_LEVELS } from '../../shared/api/boxes.ts'
import { IMAGE_PATTERN } from '../../shared/field-values.ts'
import {
  DEFAULT_IDLE_CPU_PERCENT,
  HTTP_LIMITS,
  LIMITS,
  LOG_LIMITS,
  PROMPT_LIMITS,
} from '../../shared/limits.ts'
import { REGIONS, type Region } from '../../shared/tiers.ts'
import { validationMessage } from '../../shared/validation-message.ts'
import { isTracingRequested } from './is-tracing-requested.ts'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
const LOG_FORMATS = ['auto', 'pretty', 'json'] as const
const ISOLATION_CHOICES = ['auto', ...ISOLATION_LEVELS] as const
const SIGNUP_CHOICES = ['closed', 'open'] as const
const ON_OFF = ['on', 'off'] as const
const BILLING_CHOICES = ['off', 'manual', 'stripe'] as const
/** The kinds of providers. */
export const PROVIDER_KINDS = ['local', 'docker', 'podman', 'incus'] as const
export type ProviderKind = (typeof PROVIDER_KINDS)[number]
/** The provider of a region. `target` is where Incus places the boxes: a member of the cluster, or `@` and a group. */
export type RegionProvider = { kind: ProviderKind; target: string | null }
const NETWORK_CHOICES = ['auto', ...BOX_NETWORKS] as const
const PROTECTIONS_CHOICES = ['keep', 'any'] as const

export type Config = {
  listen: { host: string; port: number }
  /** An absolute path. */
  dataDir: string
  /** The URL of a Postgres database; null: the database is a file in the data directory. */
  databaseUrl: string | null
  /** The file of the master keys, which the operator provides; null: master-keys in the data directory. */
  masterKeysFile: string | null
  /** An origin and the path that a proxy adds, without a slash at its end; null: the address at which the coordinator listens. */
  publicUrl: string | null
  /** An origin and the path that a proxy adds, without a slash at its end; null: the address at which the coordinator listens. */
  agentUrl: string | null
  /** The address of the second listener, which serves the metrics. */
  metricsListen: { host: string; port: number } | null
  /** A second port for HTTPS, and the files of its certificate. Either all are set or none. */
  tlsListen: { host: string; port: number } | null
  tlsCert: string | null
  tlsKey: string | null
  /** The token that reads the metrics, on both listeners. */
  metricsToken: string | null
  /** smtp: or smtps:, with user and password; null: codes are printed on stdout. */
  smtpUrl: string | null
  /** null: boxwood@ and the host of the public URL. */
  mailFrom: string | null
  /** Whether strangers may create workspaces. */
  signup: boolean
  /** Whether ports of boxes can be shared, and whether with people who are not members. */
  shares: boolean
  shareLinks: boolean
  /** The origin above the links of shared ports; null: localhost and the port at which the coordinator listens. */
  shareBase: string | null
  /** Whether browsers get the dashboard. */
  dashboard: boolean
  /** Addresses and ranges of the reverse proxies whose X-Forwarded-For is used. */
  trustedProxies: readonly string[]
  /** The OTEL_* variables request traces. */
  traces: boolean
  logLevel: (typeof LOG_LEVELS)[number]
  logFormat: (typeof LOG_FORMATS)[number]
  /** Of the agents of local boxes. */
  agentLogLevel: (typeof LOG_LEVELS)[number]
  /** The provider of each region in which boxes can be created. */
  regions: ReadonlyMap<Region, RegionProvider>
  /** The address of the engine as unix:///PATH or tcp://HOST:PORT; null: it is found (providers/docker/find-engine.ts). */
  dockerHost: string | null
  podmanHost: string | null
  /** IPv4 ranges from which each box of Docker or Podman gets a subnet. */
  dockerSubnets: readonly string[]
  /** The image of a box that is created without one, in a region with images. */
  defaultImage: string
  /** The maximum number of images that the coordinator has downloaded, and their size. imageGib: 0: no limit. */
  imageLimit: number
  imageGib: number
  /** The absolute path of the server's socket, or its https URL; null: it is found (providers/incus/find-server.ts). */
  incus: string | null
  /** PEM files: the certificate and the key of the coordinator, and the certificate of the server. */
  incusCert: string | null
  incusKey: string | null
  incusServerCert: string | null
  /** The storage pool of the boxes; null: that of the profile `default`. */
  incusPool: string | null
  isolation: (typeof ISOLATION_CHOICES)[number]
  network: (typeof NETWORK_CHOICES)[number]
  /** Whether boxes may have fewer limits and filters than at the last start. */
  protections: (typeof PROTECTIONS_CHOICES)[number]
  /** The maximum number of connections of clients and agents. */
  maxConnections: number
  /** The maximum number of connections of a client address on which no request with a credential was sent. */
  addressConnections: number
  headersTimeoutSeconds: number
  idleTimeoutSeconds: number
  /** Edge requests per second and concurrent edge requests, per key and per box. */
  edgeRate: number
  edgeConcurrency: number
  /** Concurrent event streams per key. */
  edgeStreams: number
  /** Concurrent attached connections, per key and per box. */
  edgeAttachments: number
  /** Concurrent forwarded TCP connections, per key and per box. */
  edgeForwards: number
  /** Open terminals per workspace. */
  terminalLimit: number
  /** The retention of the command history in days, and its limits per box: records and MiB of output. */
  commandDays: number
  commandRecords: number
  commandOutputMiB: number
  /** How long a suspended box stays frozen until it is stopped. 0: boxes are not frozen. */
  freezeMinutes: number
  /** How long a box stays suspended until it is packed into an archive. 0: never. */
  deepSleepDays: number
  /** The CPU usage from which a box is active, in percent of one CPU. */
  idleCpuPercent: number
  /** Days that a deleted box and its history stay readable. */
  deletedBoxDays: number
  /** Days in which a closing workspace can be reopened, until everything of it is deleted. */
  purgeDays: number
  /** The maximum number of snapshots of a workspace. */
  snapshotLimit: number
  /** off: nothing has a price. manual: an operator grants credit. stripe: workspaces pay by card too. */
  billing: (typeof BILLING_CHOICES)[number]
  /** An absolute path; null: the prices of billing/prices.ts. */
  pricesFile: string | null
  /** Micro-dollars that the first workspace of a person has. */
  freeCreditMicros: number
  /** The balance is low when it lasts for less than these hours. */
  balanceWarnHours: number
  /** The secret key of Stripe, and the secret with which it signs events; null unless `billing` is stripe. */
  stripeKey: string | null
  stripeWebhookSecret: string | null
  /** A saved card pays this amount in micro-dollars when the balance is lower. */
  autoTopUpMicros: number
  /** The most micro-dollars that a workspace with a saved card may owe. */
  cardOverdraftMicros: number
  /** Whether a box that is deleted leaves a snapshot. */
  finalSnapshots: boolean
  /** Whether the audit log may be delivered to endpoints that are not on the public internet. */
  auditSinkPrivate: boolean
  /** Addresses and ranges that are not public, and to which requests with secrets may be sent nevertheless. */
  secretsPrivate: readonly string[]
  /** The issuer of the identity tokens of boxes: a public https URL without a port, a query and a slash at its end; null: none. */
  oidcIssuer: string | null
  /** The https URL in S3 of the template that creates a role; null: there is no quick connect. */
  awsTemplateUrl: string | null
  /** null: that of the region. */
  awsStsEndpoint: string | null
  /** null: the global endpoint, and us-east-1 for the console. */
  awsRegion: string | null
  /** The bytes of logs on a box's disk: per stream of a detached process, and for all exited processes together. */
  logBytes: number
  exitedLogBytes: number
  /** Limits of a box: runs in progress, stored conversations, queued prompts, and the time of a run in minutes. */
  promptRuns: number
  promptConversations: number
  promptQueue: number
  promptMinutes: number
}

/** host:port, with an IPv6 address in brackets. */
const ADDRESS = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^\s:[\]/@]+)):(?<port>\d{1,5})$/

const listen = z.string().transform((text, context) => {
  const { v6, host = v6, port } = ADDRESS.exec(text)?.groups ?? {}
  if (host !== undefined && Number(port) <= 65_535) return { host, port: Number(port) }
  context.addIssue('must be host:port, such as 127.0.0.1:7070 or [::1]:7070')
  return z.NEVER
})

/** The path that a reverse proxy adds. Its characters need no escape in HTML, in URLs and in shells. */
const ADDED_PATH = /^(?:\/[A-Za-z0-9._~-]+)*$/

/** Without a slash at its end. */
const baseUrl = z.string().transform((text, context) => {
  const url = URL.parse(text)
  const bare = text.replace(/\/$/, '')
  const path = url?.pathname.replace(/\/$/, '') ?? ''
  if (url && /^https?:$/.test(url.protocol) && ADDED_PATH.test(path) && bare === url.origin + path)
    return bare
  context.addIssue(
    'must be an http or https URL, such as https://boxes.example.com or https://example.com/boxwood; its path has letters, digits and any of ._~- only',
  )
  return z.NEVER
})

const oidcIssuer = z.string().transform((text, context) => {
  const url = URL.parse(text)
  const path = url?.pathname.replace(/\/$/, '') ?? ''
  if (url?.protocol === 'https:' && url.port === '' && ADDED_PATH.test(path) && text === url.origin + path)
    return text
  context.addIssue(
    'must be an https URL in lowercase without a port, a query and a slash at its end, such as https://boxes.example.com/oidc',
  )
  return z.NEVER
})

const templateUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && /(^|\.)s3[.-]/.test(url.hostname) && url.hash === ''
}, 'must be the https URL of an object in S3, such as https://bucket.s3.us-east-1.amazonaws.com/boxwood-role.yaml')

const endpointUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === ''
}, 'must be an http or https URL, such as https://sts.eu-central-1.amazonaws.com')

const awsRegion = z
  .string()
  .regex(/^[a-z]{2}(-[a-z]+)+-\d{1,2}$/, 'must be a region of AWS, such as eu-central-1')

const SHARE_BASE =
  /^(?:(?<scheme>https?):\/\/)?(?<host>(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*)(?<port>:\d{1,5})?\/?$/i

const shareBase = z.string().transform((text, context) => {
  const { scheme, host = '', port = '' } = SHARE_BASE.exec(text)?.groups ?? {}
  const isLocal = /(^|\.)localhost$/i.test(host)
  const url = host === '' ? null : URL.parse(`${scheme ?? (isLocal ? 'http' : 'https')}://${host}${port}`)
  if (url) return url.origin
  context.addIssue(
    'must be host, host:port or an http or https URL without a path, such as boxes.example.com',
  )
  return z.NEVER
})

const oneOf = <const T extends readonly string[]>(choices: T) =>
  z.enum(choices, `must be one of ${choices.join(', ')}`)

const databaseUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^postgres(ql)?:$/.test(url.protocol) && url.pathname.length > 1
}, 'must be the URL of a Postgres database, such as postgres://user:password@host:5432/boxwood')

const smtpUrl = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^smtps?:$/.test(url.protocol) && url.hostname !== ''
}, 'must be the URL of an SMTP server, such as smtps://user:password@mail.example.com')

const mailFrom = z
  .string()
  .regex(
    /^(?:[^<>"\p{C}]+ <[^\s<>@"]+@[^\s<>@"]+>|[^\s<>@"]+@[^\s<>@"]+)$/u,
    'must be an email address, such as boxwood@example.com or Boxwood <boxwood@example.com>',
  )

const addressRanges = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .refine(
    (entries) => entries.every((entry) => ipaddr.isValid(entry) || ipaddr.isValidCIDR(entry)),
    'must be a comma-separated list of IP addresses and ranges, such as 127.0.0.1,10.0.0.0/8',
  )

const isRegion = (text: string): text is Region => (REGIONS as readonly string[]).includes(text)

/** Null: no valid provider. */
function parseProvider(text: string): RegionProvider | null {
  const [name = '', target = null, ...rest] = text.split('/')
  const kind = PROVIDER_KINDS.find((known) => known === name)
  if (kind === undefined || rest.length > 0) return null
  if (target !== null && (kind !== 'incus' || !/^@?[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(target)))
    return null
  return { kind, target }
}

const regions = z.string().transform((text, context) => {
  const entries = text.split(',').map((entry) => entry.split('=').map((part) => part.trim()))
  const chosen = new Map<Region, RegionProvider>()
  for (const [region = '', provider = '', ...rest] of entries) {
    const parsed = parseProvider(provider)
    if (isRegion(region) && parsed !== null && rest.length === 0 && !chosen.has(region))
      chosen.set(region, parsed)
  }
  if (chosen.size === entries.length) return chosen
  context.addIssue(
    `must be a comma-separated list of region=provider, each region once, such as us-west-2=local,us-east-1=docker. Regions: ${REGIONS.join(', ')}. Providers: ${PROVIDER_KINDS.join(', ')}; incus/MEMBER or incus/@GROUP places boxes on a part of a cluster`,
  )
  return z.NEVER
})

/** Null: the address is no unix: or tcp: URL. */
const parseEngineUrl = (text: string): string | null => {
  if (text.startsWith('/')) return `unix://${text}`
  if (/^unix:\/\/\/[^/]/.test(text)) return text
  const url = /^tcp:\/\//.test(text) ? URL.parse(text) : null
  return url !== null && url.hostname !== '' && url.port !== '' && /^\/?$/.test(url.pathname) ? text : null
}

const engineUrl = z.string().transform((text, context) => {
  const address = parseEngineUrl(text)
  if (address !== null) return address
  context.addIssue(
    text.startsWith('ssh:')
      ? 'must not be an ssh: URL: let ssh forward the socket (`ssh -N -L /tmp/docker.sock:/var/run/docker.sock HOST`), and use unix:///tmp/docker.sock'
      : 'must be unix:///PATH or tcp://HOST:PORT, such as unix:///var/run/docker.sock',
  )
  return z.NEVER
})

const incusAddress = z.string().transform((text, context) => {
  const path = text.replace(/^unix:\/\//, '')
  if (path.startsWith('/')) return path
  const url = URL.parse(text)
  if (url?.protocol === 'https:' && /^\/?$/.test(url.pathname)) return url.origin
  context.addIssue('must be the path of a socket or an https URL, such as https://incus.example.com:8443')
  return z.NEVER
})

/** Each box uses a /29. */
const SUBNET_BITS = { min: 8, max: 29 }

const subnets = z
  .string()
  .transform((text) => text.split(',').map((entry) => entry.trim()))
  .refine((entries) => {
    return entries.every((entry) => {
      if (!ipaddr.IPv4.isValidCIDR(entry)) return false
      const [, bits] = ipaddr.IPv4.parseCIDR(entry)
      return bits >= SUBNET_BITS.min && bits <= SUBNET_BITS.max
    })
  }, 'must be a comma-separated list of IPv4 ranges of /8 to /29, such as 10.213.0.0/16')

const image = z.string().regex(IMAGE_PATTERN, 'must be the name of an image, such as debian:12')

const incusName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be the name of a storage pool, such as default')

/** Relative to the working directory. */
const file = z.string().transform((path) => resolve(path))

const positiveInteger = z
  .string()
  .regex(/^[1-9]\d{0,11}$/, 'must be an integer between 1 and 999999999999')
  .transform(Number)

const integerOrZero = z
  .string()
  .regex(/^(0|[1-9]\d{0,5})$/, 'must be an integer between 0 and 999999')
  .transform(Number)

const integerBetween = ({ min, max }: { min: number; max: number }) =>
  positiveInteger.refine(
    (value) => value >= min && value <= max,
    `must be an integer between ${min} and ${max}`,
  )

/** Converts dollars to micro-dollars. */
const dollars = z
  .string()
  .regex(/^\d{1,6}(\.\d{1,2})?$/, 'must be an amount in dollars with at most two decimals, such as 5.00')
  .transform((text) => Math.round(Number(text) * 100) * 10_000)

const MIN_TOP_UP_MICROS = 5_000_000

const secret = z.string().regex(/^[\x21-\x7e]{8,256}$/, 'must be 8 to 256 ASCII characters without spaces')

const onOff = oneOf(ON_OFF).transform((value) => value === 'on')

const token = z.string().regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 ASCII characters without spaces')

const timeoutSeconds = positiveInteger.refine((seconds) => seconds <= 3600, 'must be at most 3600')

type Variable = {
  default: string | null
  shownDefault?: string
  description: string
  schema: z.ZodType
  /** Error messages do not contain the value. */
  isSecret?: boolean
}

/** Name → default, description and schema. docs/operate.md has the same table. */
export const VARIABLES = {
  BOXWOOD_LISTEN: {
    default: '127.0.0.1:7070',
    description:
      'listen host and port; port 0 picks a free port. A start without the variable uses the address of the last one',
    schema: listen,
  },
  BOXWOOD_DATA: {
    default: '.boxwood',
    description:
      "the directory of the database, the owner's key and the local boxes; used by one coordinator at a time",
    schema: file,
  },
  BOXWOOD_DATABASE_URL: {
    default: null,
    shownDefault: 'a file in the data directory',
    description: 'the URL of a Postgres database',
    schema: databaseUrl,
    isSecret: true,
  },
  BOXWOOD_MASTER_KEYS: {
    default: null,
    shownDefault: '`master-keys` in the data directory',
    description:
      'a file with the master keys, which encrypt secrets in the database; the coordinator never writes it',
    schema: file,
  },
  BOXWOOD_PUBLIC_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    description: 'the URL at which clients reach the coordinator, with the path that a reverse proxy adds',
    schema: baseUrl,
  },
  BOXWOOD_AGENT_URL: {
    default: null,
    shownDefault: '`http://` and where it listens',
    description: 'the URL at which agents reach the coordinator. Local boxes then use it instead of a socket',
    schema: baseUrl,
  },
  BOXWOOD_TLS_LISTEN: {
    default: null,
    shownDefault: 'off',
    description: 'host and port of a second listener, which serves HTTPS; needs the next two variables',
    schema: listen,
  },
  BOXWOOD_TLS_CERT: {
    default: null,
    shownDefault: 'none',
    description: 'the file of the certificate with its chain, in the PEM format; read again when it changes',
    schema: file,
  },
  BOXWOOD_TLS_KEY: {
    default: null,
    shownDefault: 'none',
    description: 'the file of the private key of the certificate, in the PEM format',
    schema: file,
  },
  BOXWOOD_METRICS_LISTEN: {
    default: null,
    shownDefault: 'off',
    description:
      'host and port of a second listener, which serves `GET /metrics`; without a token anyone who can connect may read it',
    schema: listen,
  },
  BOXWOOD_METRICS_TOKEN: {
    default: null,
    shownDefault: 'off',
    description: 'the bearer token of `GET /metrics`, which `BOXWOOD_LISTEN` then serves too',
    schema: token,
    isSecret: true,
  },
  BOXWOOD_SMTP_URL: {
    default: null,
    shownDefault: 'off',
    description:
      'the URL of the SMTP server for sign-in codes and invitations, with user and password; without it the coordinator prints sign-in codes on its stdout',
    schema: smtpUrl,
    isSecret: true,
  },
  BOXWOOD_MAIL_FROM: {
    default: null,
    shownDefault: '`boxwood@` and the host of the public URL',
    description: 'the sender of mails',
    schema: mailFrom,
  },
  BOXWOOD_SIGNUP: {
    default: 'closed',
    description: 'closed or open; open lets anyone with an email address create a workspace',
    schema: oneOf(SIGNUP_CHOICES).transform((value) => value === 'open'),
  },
  BOXWOOD_SHARES: {
    default: 'on',
    description: 'on or off; off shares no ports of boxes',
    schema: onOff,
  },
  BOXWOOD_SHARE_LINKS: {
    default: 'on',
    description: 'on or off; off shares ports of boxes only with members of the workspace',
    schema: onOff,
  },
  BOXWOOD_SHARE_BASE: {
    default: null,
    shownDefault: '`localhost` and the port where it listens',
    description:
      'the domain under which each shared port gets a host name, as `host`, `host:port` or an origin; `https` unless it is `localhost`',
    schema: shareBase,
  },
  BOXWOOD_DASHBOARD: {
    default: 'on',
    description: 'on or off; off serves a page with the boxes instead of the dashboard',
    schema: onOff,
  },
  BOXWOOD_TRUSTED_PROXIES: {
    default: null,
    shownDefault: 'none',
    description:
      'IP addresses and ranges of reverse proxies, separated by commas; their `X-Forwarded-For` is the address of the client',
    schema: addressRanges,
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
  BOXWOOD_AGENT_LOG: {
    default: 'info',
    description: 'log level of the agents of local boxes, which log into the directories of their boxes',
    schema: oneOf(LOG_LEVELS),
  },
  BOXWOOD_REGIONS: {
    default: REGIONS.map((region) => `${region}=local`).join(','),
    shownDefault: 'all, `local`',
    description:
      'the regions in which boxes can be created, and the provider of each, as `region=provider`, separated by commas: `local`, `docker`, `podman` or `incus`',
    schema: regions,
  },
  BOXWOOD_DOCKER_HOST: {
    default: null,
    shownDefault: 'found',
    description:
      'the address of the Docker engine, `unix:///PATH` or `tcp://HOST:PORT`; without it, that of the `docker` command',
    schema: engineUrl,
  },
  BOXWOOD_PODMAN_HOST: {
    default: null,
    shownDefault: 'found',
    description:
      'the address of the Podman engine, `unix:///PATH` or `tcp://HOST:PORT`; without it, that of the `podman` command',
    schema: engineUrl,
  },
  BOXWOOD_DOCKER_SUBNETS: {
    default: '10.213.0.0/16',
    description:
      'IPv4 ranges, separated by commas, from which each box of Docker or Podman gets a network of its own, a /29',
    schema: subnets,
  },
  BOXWOOD_DEFAULT_IMAGE: {
    default: 'debian:12',
    description: 'the image of a box that is created without one, in a region with images',
    schema: image,
  },
  BOXWOOD_IMAGE_LIMIT: {
    default: '100',
    description: 'images that the coordinator keeps in the engines after it has downloaded them',
    schema: positiveInteger,
  },
  BOXWOOD_IMAGE_GIB: {
    default: '0',
    description: 'GiB of these images, from which no further image is downloaded; 0: no limit',
    schema: integerOrZero,
  },
  BOXWOOD_INCUS: {
    default: null,
    shownDefault: 'found',
    description:
      'the path of the socket of the Incus server, or the https URL of a server or a member of a cluster',
    schema: incusAddress,
  },
  BOXWOOD_INCUS_CERT: {
    default: null,
    shownDefault: 'none',
    description:
      'the file of the client certificate that the Incus server trusts, in the PEM format; for an https URL',
    schema: file,
  },
  BOXWOOD_INCUS_KEY: {
    default: null,
    shownDefault: 'none',
    description: 'the file of the private key of that certificate, in the PEM format',
    schema: file,
  },
  BOXWOOD_INCUS_SERVER_CERT: {
    default: null,
    shownDefault: 'those of Node',
    description: 'the file of the certificate of the Incus server or cluster, in the PEM format',
    schema: file,
  },
  BOXWOOD_INCUS_POOL: {
    default: null,
    shownDefault: 'that of the profile `default`',
    description: 'the storage pool of the Incus boxes; btrfs and zfs pools take snapshots at once',
    schema: incusName,
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
  BOXWOOD_PROTECTIONS: {
    default: 'keep',
    description:
      'keep refuses boxes where a limit of CPUs, memory or processes, a filter of system calls or the user ids of an engine protected them before and do not now; any accepts this',
    schema: oneOf(PROTECTIONS_CHOICES),
  },
  BOXWOOD_MAX_CONNECTIONS: {
    default: String(HTTP_LIMITS.connections.default),
    description: 'open connections of clients and agents; half of them are for those with a credential',
    schema: positiveInteger,
  },
  BOXWOOD_ADDRESS_CONNECTIONS: {
    default: String(HTTP_LIMITS.addressConnections.default),
    description:
      'open connections without a credential, per client address; at the limit the oldest one with an incomplete request is closed',
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
  BOXWOOD_EDGE_FORWARDS: {
    default: String(LIMITS.edgeForwards),
    description: 'concurrent TCP connections of `box forward`, per key and per box',
    schema: positiveInteger,
  },
  BOXWOOD_TERMINAL_LIMIT: {
    default: String(LIMITS.openTerminals),
    description: 'open terminals, per workspace',
    schema: positiveInteger,
  },
  BOXWOOD_FREEZE_MINUTES: {
    default: '60',
    description:
      'minutes that a suspended box stays frozen, with the memory of its processes, until it is stopped; 0: a suspend stops the box at once',
    schema: integerOrZero,
  },
  BOXWOOD_DEEP_SLEEP_DAYS: {
    default: '14',
    description:
      'days that a box stays suspended until its files are packed into an archive, which frees its disk; 0: never',
    schema: integerOrZero,
  },
  BOXWOOD_SNAPSHOT_LIMIT: {
    default: '100',
    description:
      'snapshots of a workspace that requests may create; failed ones and the copies that forks make do not count',
    schema: positiveInteger,
  },
  BOXWOOD_FINAL_SNAPSHOTS: {
    default: 'off',
    description: 'on or off; on takes a snapshot of each box that is deleted',
    schema: onOff,
  },
  BOXWOOD_BILLING: {
    default: 'off',
    description:
      'off, manual or stripe. off: boxes cost nothing. manual: `boxwood credit` adds credit to a workspace. stripe: owners also pay by card',
    schema: oneOf(BILLING_CHOICES),
  },
  BOXWOOD_PRICES: {
    default: null,
    shownDefault: 'the prices in docs/billing.md',
    description: 'a JSON file with the prices and the times from which they apply; read at the start',
    schema: file,
  },
  BOXWOOD_FREE_CREDIT: {
    default: '5.00',
    description: "the credit of a person's first workspace in dollars, if billing is on",
    schema: dollars,
  },
  BOXWOOD_BALANCE_WARN_HOURS: {
    default: '24',
    description: 'owners get a mail when the balance lasts for less than these hours',
    schema: positiveInteger.refine((hours) => hours <= 8760, 'must be at most 8760'),
  },
  BOXWOOD_STRIPE_KEY: {
    default: null,
    shownDefault: 'none',
    description: 'the secret key of Stripe, which BOXWOOD_BILLING=stripe needs',
    schema: secret,
    isSecret: true,
  },
  BOXWOOD_STRIPE_WEBHOOK_SECRET: {
    default: null,
    shownDefault: 'none',
    description: 'the signing secret of the webhook of Stripe, which BOXWOOD_BILLING=stripe needs',
    schema: secret,
    isSecret: true,
  },
  BOXWOOD_AUTO_TOP_UP: {
    default: '20.00',
    description: 'dollars that a saved card pays when the balance of its workspace is lower',
    schema: dollars.refine((micros) => micros >= MIN_TOP_UP_MICROS, 'must be at least 5.00'),
  },
  BOXWOOD_CARD_OVERDRAFT: {
    default: '100.00',
    description:
      'the most dollars that a workspace with a saved card may owe; at most what the card has paid',
    schema: dollars,
  },
  BOXWOOD_IDLE_CPU_PERCENT: {
    default: String(DEFAULT_IDLE_CPU_PERCENT),
    description: 'a box is not idle while it uses this much CPU, in percent of one CPU',
    schema: positiveInteger.refine((percent) => percent <= 100, 'must be at most 100'),
  },
  BOXWOOD_DELETED_BOX_DAYS: {
    default: '30',
    description: 'days that a deleted box and its history stay readable',
    schema: positiveInteger,
  },
  BOXWOOD_PURGE_DAYS: {
    default: '30',
    description:
      'days in which a workspace that was closed can be reopened; then everything of it is deleted; 0: at once',
    schema: integerOrZero,
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
  BOXWOOD_AUDIT_SINK_PRIVATE: {
    default: 'off',
    description:
      'on or off; on delivers audit logs also to endpoints that are not on the public internet, such as a collector in your network',
    schema: onOff,
  },
  BOXWOOD_SECRETS_PRIVATE: {
    default: null,
    shownDefault: 'none',
    description:
      'IP addresses and ranges that are not public, separated by commas, to which requests with secrets may be sent nevertheless, such as those of servers in your network',
    schema: addressRanges,
  },
  BOXWOOD_OIDC_ISSUER: {
    default: null,
    shownDefault: 'none',
    description:
      'the public https URL whose documents AWS reads to verify the tokens of boxes; without it, boxes get no AWS roles',
    schema: oidcIssuer,
  },
  BOXWOOD_AWS_TEMPLATE_URL: {
    default: null,
    shownDefault: 'none',
    description:
      'the https URL in S3 of install/aws/boxwood-role.yaml; without it, there is no link that creates a role',
    schema: templateUrl,
  },
  AWS_ENDPOINT_URL_STS: {
    default: null,
    shownDefault: 'that of AWS_REGION',
    description: 'the endpoint of STS at which roles are verified, as the SDKs of AWS read it',
    schema: endpointUrl,
  },
  AWS_REGION: {
    default: null,
    shownDefault: 'the global endpoint',
    description:
      'the region of AWS in which roles are verified, and in which the link that creates a role opens',
    schema: awsRegion,
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
  BOXWOOD_PROMPT_RUNS: {
    default: String(PROMPT_LIMITS.runs.default),
    description: 'runs of coding agents in progress on a box',
    schema: integerBetween(PROMPT_LIMITS.runs),
  },
  BOXWOOD_PROMPT_CONVERSATIONS: {
    default: String(PROMPT_LIMITS.conversations.default),
    description:
      'conversations that a box stores; a new one replaces the least recently active one, which is deleted with its runs',
    schema: integerBetween(PROMPT_LIMITS.conversations),
  },
  BOXWOOD_PROMPT_QUEUE: {
    default: String(PROMPT_LIMITS.queued.default),
    description: 'prompts that wait in the queue of a box',
    schema: integerBetween(PROMPT_LIMITS.queued),
  },
  BOXWOOD_PROMPT_MINUTES: {
    default: String(PROMPT_LIMITS.minutes.default),
    description:
      'minutes after which a run of a coding agent is ended, without the time in which the box is frozen',
    schema: integerBetween(PROMPT_LIMITS.minutes),
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
    const { default: fallback, schema, isSecret = false }: Variable = VARIABLES[name]
    const text = env[name] || fallback
    if (text === null) return null
    const result = schema.safeParse(text)
    if (result.success) return result.data as z.output<(typeof VARIABLES)[N]['schema']>
    const value = isSecret ? '' : `; it is ${JSON.stringify(text)}`
    problems.push(`${validationMessage(result.error.issues, name)}${value}.`)
    return null
  }
  const config = {
    listen: read('BOXWOOD_LISTEN'),
    dataDir: read('BOXWOOD_DATA'),
    databaseUrl: read('BOXWOOD_DATABASE_URL'),
    masterKeysFile: read('BOXWOOD_MASTER_KEYS'),
    publicUrl: read('BOXWOOD_PUBLIC_URL'),
    agentUrl: read('BOXWOOD_AGENT_URL'),
    tlsListen: read('BOXWOOD_TLS_LISTEN'),
    tlsCert: read('BOXWOOD_TLS_CERT'),
    tlsKey: read('BOXWOOD_TLS_KEY'),
    metricsListen: read('BOXWOOD_METRICS_LISTEN'),
    metricsToken: read('BOXWOOD_METRICS_TOKEN'),
    smtpUrl: read('BOXWOOD_SMTP_URL'),
    mailFrom: read('BOXWOOD_MAIL_FROM'),
    signup: read('BOXWOOD_SIGNUP'),
    shares: read('BOXWOOD_SHARES'),
    shareLinks: read('BOXWOOD_SHARE_LINKS'),
    shareBase: read('BOXWOOD_SHARE_BASE'),
    dashboard: read('BOXWOOD_DASHBOARD'),
    trustedProxies: read('BOXWOOD_TRUSTED_PROXIES') ?? [],
    traces: isTracingRequested(env),
    logLevel: read('BOXWOOD_LOG'),
    logFormat: read('BOXWOOD_LOG_FORMAT'),
    agentLogLevel: read('BOXWOOD_AGENT_LOG'),
    regions: read('BOXWOOD_REGIONS'),
    dockerHost: read('BOXWOOD_DOCKER_HOST'),
    podmanHost: read('BOXWOOD_PODMAN_HOST'),
    dockerSubnets: read('BOXWOOD_DOCKER_SUBNETS'),
    defaultImage: read('BOXWOOD_DEFAULT_IMAGE'),
    imageLimit: read('BOXWOOD_IMAGE_LIMIT'),
    imageGib: read('BOXWOOD_IMAGE_GIB'),
    incus: read('BOXWOOD_INCUS'),
    incusCert: read('BOXWOOD_INCUS_CERT'),
    incusKey: read('BOXWOOD_INCUS_KEY'),
    incusServerCert: read('BOXWOOD_INCUS_SERVER_CERT'),
    incusPool: read('BOXWOOD_INCUS_POOL'),
    isolation: read('BOXWOOD_LOCAL_ISOLATION'),
    network: read('BOXWOOD_LOCAL_NETWORK'),
    protections: read('BOXWOOD_PROTECTIONS'),
    maxConnections: read('BOXWOOD_MAX_CONNECTIONS'),
    addressConnections: read('BOXWOOD_ADDRESS_CONNECTIONS'),
    headersTimeoutSeconds: read('BOXWOOD_HEADERS_TIMEOUT'),
    idleTimeoutSeconds: read('BOXWOOD_IDLE_TIMEOUT'),
    edgeRate: read('BOXWOOD_EDGE_RATE'),
    edgeConcurrency: read('BOXWOOD_EDGE_CONCURRENCY'),
    edgeStreams: read('BOXWOOD_EDGE_STREAMS'),
    edgeAttachments: read('BOXWOOD_EDGE_ATTACHMENTS'),
    edgeForwards: read('BOXWOOD_EDGE_FORWARDS'),
    terminalLimit: read('BOXWOOD_TERMINAL_LIMIT'),
    freezeMinutes: read('BOXWOOD_FREEZE_MINUTES'),
    deepSleepDays: read('BOXWOOD_DEEP_SLEEP_DAYS'),
    snapshotLimit: read('BOXWOOD_SNAPSHOT_LIMIT'),
    finalSnapshots: read('BOXWOOD_FINAL_SNAPSHOTS'),
    billing: read('BOXWOOD_BILLING'),
    pricesFile: read('BOXWOOD_PRICES'),
    freeCreditMicros: read('BOXWOOD_FREE_CREDIT'),
    balanceWarnHours: read('BOXWOOD_BALANCE_WARN_HOURS'),
    stripeKey: read('BOXWOOD_STRIPE_KEY'),
    stripeWebhookSecret: read('BOXWOOD_STRIPE_WEBHOOK_SECRET'),
    autoTopUpMicros: read('BOXWOOD_AUTO_TOP_UP'),
    cardOverdraftMicros: read('BOXWOOD_CARD_OVERDRAFT'),
    idleCpuPercent: read('BOXWOOD_IDLE_CPU_PERCENT'),
    deletedBoxDays: read('BOXWOOD_DELETED_BOX_DAYS'),
    purgeDays: read('BOXWOOD_PURGE_DAYS'),
    commandDays: read('BOXWOOD_COMMAND_RETENTION_DAYS'),
    commandRecords: read('BOXWOOD_COMMAND_RECORDS'),
    commandOutputMiB: read('BOXWOOD_COMMAND_OUTPUT_MIB'),
    auditSinkPrivate: read('BOXWOOD_AUDIT_SINK_PRIVATE'),
    secretsPrivate: read('BOXWOOD_SECRETS_PRIVATE') ?? [],
    oidcIssuer: read('BOXWOOD_OIDC_ISSUER'),
    awsTemplateUrl: read('BOXWOOD_AWS_TEMPLATE_URL'),
    awsStsEndpoint: read('AWS_ENDPOINT_URL_STS'),
    awsRegion: read('AWS_REGION'),
    logBytes: read('BOXWOOD_LOG_BYTES'),
    exitedLogBytes: read('BOXWOOD_EXITED_LOG_BYTES'),
    promptRuns: read('BOXWOOD_PROMPT_RUNS'),
    promptConversations: read('BOXWOOD_PROMPT_CONVERSATIONS'),
    promptQueue: read('BOXWOOD_PROMPT_QUEUE'),
    promptMinutes: read('BOXWOOD_PROMPT_MINUTES'),
  }
  const tls = [config.tlsListen, config.tlsCert, config.tlsKey]
  if (problems.length === 0 && tls.includes(null) && tls.some((value) => value !== null))
    problems.push('BOXWOOD_TLS_LISTEN, BOXWOOD_TLS_CERT and BOXWOOD_TLS_KEY must be set together.')
  if ((config.incusCert === null) !== (config.incusKey === null))
    problems.push('BOXWOOD_INCUS_CERT and BOXWOOD_INCUS_KEY must be set together.')
  const usesStripe = config.billing === 'stripe'
  if (
    problems.length === 0 &&
    usesStripe &&
    (config.stripeKey === null || config.stripeWebhookSecret === null)
  )
    problems.push(
      'BOXWOOD_BILLING=stripe needs BOXWOOD_STRIPE_KEY and BOXWOOD_STRIPE_WEBHOOK_SECRET. `box docs billing` describes them.',
    )
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return config as Config
}
