// The arguments of setup.mjs. The enrolment token comes in an environment variable, which other users cannot read.
import { isAbsolute } from 'node:path'
import { parseArgs } from 'node:util'
import { type AgentBuild, agentBuildSchema } from '../../shared/agent-build.ts'
import { formatPublicKey } from '../../shared/agent-bundle.ts'
import { isCoordinatorUrl } from '../tunnel/coordinator-url.ts'
import { SERVICE_KINDS, type ServiceKind } from './services/service.ts'
import { SetupError } from './setup-error.ts'

export const COMMANDS = ['install', 'start', 'uninstall', 'status'] as const

export type SetupOptions = {
  command: (typeof COMMANDS)[number]
  prefix: string
  url: string | null
  /** The directory with the unpacked archive, in the prefix. Null: the installed version is current. */
  staging: string | null
  /** The downloaded archive. */
  archive: string | null
  bundle: AgentBuild | null
  /** The key of the coordinator in the PEM format. */
  publicKey: string | null
  /** The user who runs the commands of the box. Null: the user of this process. */
  user: string | null
  caFile: string | null
  /** Whether the agent is started. */
  hasService: boolean
  /** Null: the kind that this machine has. */
  serviceKind: ServiceKind | null
  /** Directories that the installer has created, the outermost first. */
  createdDirectories: string[]
}

const OPTIONS = {
  prefix: { type: 'string' },
  url: { type: 'string' },
  staging: { type: 'string' },
  archive: { type: 'string' },
  platform: { type: 'string' },
  version: { type: 'string' },
  'build-id': { type: 'string' },
  size: { type: 'string' },
  sha256: { type: 'string' },
  signature: { type: 'string' },
  'public-key': { type: 'string' },
  user: { type: 'string' },
  ca: { type: 'string' },
  'no-service': { type: 'boolean' },
  service: { type: 'string' },
  created: { type: 'string', multiple: true },
} as const

/** @throws SetupError */
export function readOptions(args: readonly string[], defaultPrefix: string): SetupOptions {
  const { values, positionals } = parse(args)
  const command = COMMANDS.find((name) => name === positionals[0])
  if (command === undefined || positionals.length > 1)
    throw new SetupError(`Usage: setup.mjs ${COMMANDS.join(' | ')}`)
  const { prefix = defaultPrefix, url = null } = values
  if (!isAbsolute(prefix)) throw new SetupError(`${prefix} is not an absolute path. Pass one with --prefix.`)
  if (url !== null && !isCoordinatorUrl(url))
    throw new SetupError(`${url} is not an http:// or https:// URL. Pass the URL of the coordinator.`)
  const bundle = agentBuildSchema.safeParse({
    ...values,
    buildId: values['build-id'],
    size: Number(values.size),
  })
  return {
    command,
    prefix,
    url: url?.replace(/\/+$/, '') ?? null,
    staging: values.staging ?? null,
    archive: values.archive ?? null,
    bundle: bundle.success ? bundle.data : null,
    publicKey: values['public-key'] === undefined ? null : formatPublicKey(values['public-key']),
    user: values.user ?? null,
    caFile: values.ca ?? null,
    hasService: values['no-service'] !== true,
    serviceKind: readServiceKind(values.service),
    createdDirectories: values.created ?? [],
  }
}

function readServiceKind(text: string | undefined): ServiceKind | null {
  const kind = SERVICE_KINDS.find((name) => name === text)
  if (text === undefined || kind !== undefined) return kind ?? null
  throw new SetupError(`There is no kind of service ${text}. Pass one of ${SERVICE_KINDS.join(', ')}.`)
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw new SetupError(`${(error as Error).message}. Download install.sh again.`)
  }
}
