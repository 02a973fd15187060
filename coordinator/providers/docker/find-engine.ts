// Finds the Docker and Podman engines of this machine in the order in which their commands find them.
import { createHash } from 'node:crypto'
import { accessSync, constants, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PermanentProviderError } from '../provider.ts'

export type EngineKind = 'docker' | 'podman'

/** The files of a TLS connection, in the PEM format. Those that do not exist are null. */
export type EngineTls = {
  ca: string | null
  cert: string | null
  key: string | null
  /** Whether the certificate of the engine is checked. */
  isVerified: boolean
}

export type EngineEndpoint =
  | { socketPath: string }
  /** tls: null for plain TCP. */
  | { host: string; port: number; tls: EngineTls | null }

/** An engine that may run. */
export type EngineCandidate = {
  kind: EngineKind
  /** What names the engine, such as `DOCKER_HOST`; null: it has the usual path of a socket. */
  source: string | null
  /** As a URL: unix:///PATH or tcp://HOST:PORT. */
  url: string
  endpoint: EngineEndpoint
}

/** Where the addresses of engines are written. */
export type EngineEnvironment = {
  /** BOXWOOD_DOCKER_HOST or BOXWOOD_PODMAN_HOST. */
  configured: string | null
  /** The URL of the engine that has the boxes; null: there is none yet. */
  previous?: string | null
  env: Readonly<Record<string, string | undefined>>
  home: string
  /** The user of this process. */
  uid: number
}

/**
 * Returns the candidates, the preferred one first. An address from a variable or a context of the docker command is the only
 * candidate: the boxes of an engine that is down must not be created in another one. Throws PermanentProviderError for an address that
 * cannot be used.
 */
export function listEngines(kind: EngineKind, environment: EngineEnvironment): EngineCandidate[] {
  const named = kind === 'docker' ? findNamedDocker(environment) : findNamedPodman(environment)
  return named === null ? listUsualSockets(kind, environment) : [named]
}

/**
 * Returns the engine that a provider uses: the named one, else the usual socket that it used before, else the first one to which this
 * user may connect, else the first one, where an engine may start later. An engine that is not up yet does not lose its boxes
 * to another one.
 */
export function findEngine(kind: EngineKind, environment: EngineEnvironment): EngineCandidate {
  const candidates = listEngines(kind, environment)
  const isPrevious = ({ url }: EngineCandidate) => url === environment.previous
  const [engine] = [...candidates.filter(isPrevious), ...candidates.filter(isUsable), ...candidates]
  if (engine === undefined) throw new Error(`There is no usual socket of ${kind}.`)
  return engine
}

export function isUsable({ endpoint }: Pick<EngineCandidate, 'endpoint'>): boolean {
  if (!('socketPath' in endpoint)) return true
  try {
    accessSync(endpoint.socketPath, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

function findNamedDocker({ configured, env, home }: EngineEnvironment): EngineCandidate | null {
  const tls = readTlsVariables(env, home)
  if (configured !== null) return createCandidate('docker', 'BOXWOOD_DOCKER_HOST', configured, tls)
  if (env.DOCKER_HOST) return createCandidate('docker', 'DOCKER_HOST', env.DOCKER_HOST, tls)
  return findDockerContext(env, home)
}

function findNamedPodman({ configured, env, home }: EngineEnvironment): EngineCandidate | null {
  if (configured !== null)
    return createCandidate('podman', 'BOXWOOD_PODMAN_HOST', configured, readTlsVariables(env, home))
  return env.CONTAINER_HOST ? createCandidate('podman', 'CONTAINER_HOST', env.CONTAINER_HOST, null) : null
}

function listUsualSockets(kind: EngineKind, { env, uid }: EngineEnvironment): EngineCandidate[] {
  const userDir = env.XDG_RUNTIME_DIR || `/run/user/${uid}`
  const paths =
    kind === 'docker'
      ? ['/var/run/docker.sock', join(userDir, 'docker.sock')]
      : ['/run/podman/podman.sock', join(userDir, 'podman/podman.sock')]
  return paths.map((path) => createCandidate(kind, null, `unix://${path}`, null))
}

function createCandidate(
  kind: EngineKind,
  source: string | null,
  url: string,
  tls: EngineTls | null,
): EngineCandidate {
  return { kind, source, url, endpoint: parseEngineUrl(url, source ?? kind, tls) }
}

/** @param source what contains the URL, for the message of an error */
function parseEngineUrl(text: string, source: string, tls: EngineTls | null): EngineEndpoint {
  if (text.startsWith('unix:///')) return { socketPath: text.slice('unix://'.length) }
  const url = URL.parse(text)
  if (url?.protocol === 'ssh:')
    throw new PermanentProviderError(
      `${source} is ${text}, and Boxwood does not connect to engines over ssh. Let ssh forward the socket with \`ssh -N -L /tmp/engine.sock:/var/run/docker.sock ${url.host}\`, and set ${source} to unix:///tmp/engine.sock.`,
    )
  if (url?.protocol !== 'tcp:' || url.hostname === '')
    throw new PermanentProviderError(`${source} must be unix:///PATH or tcp://HOST:PORT. It is ${text}.`)
  // The hostname of an IPv6 address has brackets.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return { host, port: url.port === '' ? (tls === null ? 2375 : 2376) : Number(url.port), tls }
}

/** The variables of the docker command. Without DOCKER_TLS_VERIFY the command does not check the engine; Boxwood always does. */
function readTlsVariables(env: EngineEnvironment['env'], home: string): EngineTls | null {
  if (!env.DOCKER_CERT_PATH && !env.DOCKER_TLS_VERIFY) return null
  return readTlsDirectory(env.DOCKER_CERT_PATH || getConfigDir(env, home), true)
}

function readTlsDirectory(dir: string, isVerified: boolean): EngineTls {
  const read = (name: string) => readOptional(join(dir, name))
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem'), isVerified }
}

const getConfigDir = (env: EngineEnvironment['env'], home: string): string =>
  env.DOCKER_CONFIG || join(home, '.docker')

type ContextMeta = { Endpoints?: { docker?: { Host?: string; SkipTLSVerify?: boolean } } }

/** The context that `docker context use` or DOCKER_CONTEXT has selected; null: the default one. */
function findDockerContext(env: EngineEnvironment['env'], home: string): EngineCandidate | null {
  const configDir = getConfigDir(env, home)
  const name =
    env.DOCKER_CONTEXT ||
    readJson<{ currentContext?: string }>(join(configDir, 'config.json'))?.currentContext ||
    'default'
  if (name === 'default') return null
  // The docker command names the directories of a context in this way.
  const id = createHash('sha256').update(name).digest('hex')
  const { Host: host, SkipTLSVerify = false } =
    readJson<ContextMeta>(join(configDir, 'contexts/meta', id, 'meta.json'))?.Endpoints?.docker ?? {}
  if (!host)
    throw new PermanentProviderError(
      `The docker command uses the context ${name}, which does not exist or names no engine. Set BOXWOOD_DOCKER_HOST, or select another one with \`docker context use\`.`,
    )
  const tls = readTlsDirectory(join(configDir, 'contexts/tls', id, 'docker'), !SkipTLSVerify)
  const hasTls = tls.ca !== null || tls.cert !== null || SkipTLSVerify
  return createCandidate('docker', `the docker context ${name}`, host, hasTls ? tls : null)
}

function readJson<T>(file: string): T | null {
  const text = readOptional(file)
  if (text === null) return null
  try {
    return JSON.parse(text) as T
  } catch (error) {
    throw createFileError(file, error)
  }
}

/** Null: the file does not exist. Another engine, or a connection without TLS, must not be used because it cannot be read. */
function readOptional(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return null
    throw createFileError(file, error)
  }
}

const createFileError = (file: string, error: unknown): PermanentProviderError =>
  new PermanentProviderError(
    `${file} selects the Docker engine and cannot be read: ${(error as Error).message}. Repair the file, or set BOXWOOD_DOCKER_HOST.`,
    { cause: error },
  )
