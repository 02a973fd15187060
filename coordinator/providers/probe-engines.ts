// Finds out which engines run on this machine or are configured, and what their boxes can do.

import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { homedir } from 'node:os'
import { json } from 'node:stream/consumers'
import { type EngineCandidate, type EngineEndpoint, listEngines } from './docker/find-engine.ts'
import { listIncusServers } from './incus/find-server.ts'
import { isInstalled } from './parts/system-path.ts'
import type { ProviderConfig } from './provider-host.ts'
import type { ProviderKind } from './settings.ts'

export type EngineProviderKind = Exclude<ProviderKind, 'local'>

export type EngineState =
  | {
      /** missing: nothing answers at the address. denied: this user may not use the engine. */
      status: 'missing' | 'denied' | 'failed'
      /** The rest of a sentence that begins with the name of the engine. */
      problem: string
    }
  | {
      status: 'running'
      version: string
      /** Facts that matter to an operator, such as `rootless` and `cgroup v2`. */
      facts: string[]
      canFreeze: boolean
      /** Whether the limits of a running box can be changed. */
      canResizeLive: boolean
    }

export type EngineReport = {
  kind: EngineProviderKind
  /** unix:///PATH, tcp://HOST:PORT or an https URL; empty: the configured address is not valid. */
  address: string
  /** The variable or the context that names the engine; null: it has a usual socket. */
  source: string | null
} & EngineState

export type ProbeOptions = {
  config: Pick<
    ProviderConfig,
    'dockerHost' | 'podmanHost' | 'incus' | 'incusCert' | 'incusKey' | 'incusServerCert' | 'regions'
  >
  env: Readonly<Record<string, string | undefined>>
  home?: string
  uid?: number
  isProgramInstalled?: (name: string) => boolean
  timeoutMs?: number
}

const TIMEOUT_MS = 1000

type Prober = (candidate: ProbeCandidate, signal: AbortSignal) => Promise<EngineState>
type ProbeCandidate = { address: string; source: string | null; endpoint: EngineEndpoint }

/**
 * Reports at most one engine of each kind, and none that neither runs nor is configured. Never throws; an engine that does not answer
 * in time has failed.
 */
export async function probeEngines({
  config,
  env,
  home = homedir(),
  uid = process.getuid?.() ?? 0,
  isProgramInstalled = isInstalled,
  timeoutMs = TIMEOUT_MS,
}: ProbeOptions): Promise<EngineReport[]> {
  const signal = AbortSignal.timeout(timeoutMs)
  const used = new Set([...config.regions.values()].map(({ kind }) => kind))
  const listFor = (kind: 'docker' | 'podman', configured: string | null) => () =>
    listEngines(kind, { configured, env, home, uid }).map(toProbeCandidate)
  const kinds: [EngineProviderKind, () => ProbeCandidate[], Prober][] = [
    ['docker', listFor('docker', config.dockerHost), probeDocker],
    ['podman', listFor('podman', config.podmanHost), probePodman],
    ['incus', () => listIncusCandidates(config, env), probeIncus],
  ]
  const reports = await Promise.all(
    kinds.map(([kind, list, probe]) =>
      probeKind({ kind, list, probe, isUsed: used.has(kind), isInstalled: isProgramInstalled, signal }),
    ),
  )
  return reports.filter((report) => report !== null)
}

const toProbeCandidate = ({ url, source, endpoint }: EngineCandidate): ProbeCandidate => ({
  address: url,
  source,
  endpoint,
})

function listIncusCandidates(config: ProbeOptions['config'], env: ProbeOptions['env']): ProbeCandidate[] {
  const { incusCert, incusKey, incusServerCert } = config
  const read = (file: string | null) => (file === null ? null : readFileSync(file, 'utf8'))
  return listIncusServers(config.incus, env).map(({ address, source }) => {
    const url = URL.parse(address)
    if (url?.protocol !== 'https:')
      return { address: `unix://${address}`, source, endpoint: { socketPath: address } }
    const tls = { ca: read(incusServerCert), cert: read(incusCert), key: read(incusKey), isVerified: true }
    const host = url.hostname.replace(/^\[|\]$/g, '')
    return { address, source, endpoint: { host, port: Number(url.port || 443), tls } }
  })
}

type KindOptions = {
  kind: EngineProviderKind
  list: () => ProbeCandidate[]
  probe: Prober
  /** Whether a region has the provider. */
  isUsed: boolean
  isInstalled: (name: string) => boolean
  signal: AbortSignal
}

async function probeKind({
  kind,
  list,
  probe,
  isUsed,
  isInstalled,
  signal,
}: KindOptions): Promise<EngineReport | null> {
  let candidates: ProbeCandidate[]
  try {
    candidates = list()
  } catch (error) {
    return { kind, address: '', source: null, status: 'failed', problem: getMessage(error) }
  }
  const reports = await Promise.all(
    candidates.map(async ({ address, source, endpoint }): Promise<EngineReport> => {
      const state = await probe({ address, source, endpoint }, signal).catch((error) =>
        describeFailure(error, signal),
      )
      return { kind, address, source, ...state }
    }),
  )
  const best =
    reports.find(({ status }) => status === 'running') ??
    reports.find(({ status }) => status !== 'missing') ??
    reports[0]
  if (best === undefined || best.status !== 'missing') return best ?? null
  // Docker and Incus run as services of the system; the service of Podman is a part of the package and is not enabled.
  return isUsed || best.source !== null || (kind === 'podman' && isInstalled('podman')) ? best : null
}

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function describeFailure(error: NodeJS.ErrnoException, signal: AbortSignal): EngineState {
  if (signal.aborted) return { status: 'failed', problem: 'does not answer in time' }
  if (error.code === 'EACCES' || error.code === 'EPERM')
    return { status: 'denied', problem: 'may not be used by this user' }
  if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED')
    return { status: 'missing', problem: 'does not run' }
  return { status: 'failed', problem: `does not work: ${getMessage(error)}` }
}

type DockerInfo = {
  ServerVersion?: string
  Driver?: string
  CgroupVersion?: string
  CgroupDriver?: string
  SecurityOptions?: string[] | null
  /** Podman has this field in place of the security option of Docker. */
  Rootless?: boolean
  MemoryLimit?: boolean
  CpuCfsQuota?: boolean
}

async function readDockerInfo({ endpoint }: ProbeCandidate, signal: AbortSignal) {
  const { headers, body } = await getJson<DockerInfo>(endpoint, '/info', signal)
  const isPodman = /libpod/i.test(`${headers.server ?? ''} ${Object.keys(headers).join(' ')}`)
  return { info: body, isPodman }
}

const probeDocker: Prober = async (candidate, signal) => {
  const { info, isPodman } = await readDockerInfo(candidate, signal)
  // The package podman-docker puts the socket of Podman in the usual path of Docker.
  if (isPodman && candidate.source === null) return { status: 'missing', problem: 'does not run' }
  return describeDocker(info)
}

const probePodman: Prober = async (candidate, signal) =>
  describeDocker((await readDockerInfo(candidate, signal)).info)

function describeDocker(info: DockerInfo): EngineState {
  const options = (info.SecurityOptions ?? []).map((option) => /^name=([^,]+)/.exec(option)?.[1] ?? option)
  const isRootless = info.Rootless === true || options.includes('rootless')
  const cgroupVersion = info.CgroupVersion === '2' ? 2 : 1
  // A rootless engine needs the delegation of cgroup v2.
  const hasCgroup = info.CgroupDriver !== 'none' && !(isRootless && cgroupVersion === 1)
  return {
    status: 'running',
    version: info.ServerVersion ?? 'unknown',
    facts: [
      isRootless ? 'rootless' : options.includes('userns') ? 'rootful with userns-remap' : 'rootful',
      `cgroup v${cgroupVersion}`,
      ...(info.Driver ? [info.Driver] : []),
    ],
    canFreeze: hasCgroup,
    canResizeLive: hasCgroup && info.MemoryLimit !== false && info.CpuCfsQuota !== false,
  }
}

type IncusServer = {
  metadata?: {
    auth?: string
    environment?: { server_version?: string; storage?: string; server_clustered?: boolean }
  }
}

const probeIncus: Prober = async ({ endpoint }, signal) => {
  const { metadata } = (await getJson<IncusServer>(endpoint, '/1.0', signal)).body
  if (metadata?.auth !== 'trusted')
    return { status: 'denied', problem: 'does not trust the certificate of this coordinator' }
  const { server_version, storage, server_clustered } = metadata.environment ?? {}
  return {
    status: 'running',
    version: server_version ?? 'unknown',
    facts: [...(server_clustered ? ['cluster'] : []), ...(storage ? [storage] : [])],
    canFreeze: true,
    canResizeLive: true,
  }
}

async function getJson<T>(
  endpoint: EngineEndpoint,
  path: string,
  signal: AbortSignal,
): Promise<{ headers: IncomingMessage['headers']; body: T }> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  // Podman requires a host name in the requests of a socket.
  const options = { path, signal, headers: { host: 'localhost' }, agent: false } as const
  const tls = 'host' in endpoint ? endpoint.tls : null
  const request =
    tls === null
      ? requestHttp({ ...options, ...endpoint })
      : requestHttps({ ...options, ...endpoint, ...toTlsOptions(tls) })
  request.on('response', resolve).on('error', reject).end()
  const response = await promise
  const body = (await json(response)) as T
  if (response.statusCode !== 200) throw new Error(`${path} returns status ${response.statusCode}`)
  return { headers: response.headers, body }
}

const toTlsOptions = ({
  ca,
  cert,
  key,
  isVerified,
}: NonNullable<Extract<EngineEndpoint, { host: string }>['tls']>) => ({
  ...(ca !== null && { ca }),
  ...(cert !== null && { cert }),
  ...(key !== null && { key }),
  rejectUnauthorized: isVerified,
})
