// Finds the coding-agent CLIs and their credentials on the box, and reports which ones are ready.
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { CodingAgents } from '../../../shared/api/boxes.ts'
import { PROVIDERS, type ProviderName, type ProviderReadiness } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { createSpawner, type SpawnerKind } from '../../exec/spawner.ts'
import { selectModel } from '../providers/select-model.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector } from '../types.ts'
import { createCredentialWatcher } from './credential-watcher.ts'
import { type FoundProgram, findProgram } from './file-identity.ts'
import { createInstaller } from './install-program.ts'
import { createLoginEnvironment, type Environment, withLocalPrograms } from './login-environment.ts'
import { brokenProgramError, missingProgramError, signedOutError } from './messages.ts'
import { createProber } from './probe.ts'
import { createProgramVersions } from './program-versions.ts'
import { readText } from './read-text.ts'

/** The vitals report readiness(), and send a heartbeat after 'change'. */
export type WatchingProviderDetector = ProviderDetector & {
  /** 'change': readiness() returns another object. At most every 250 ms. */
  events: EventEmitter<{ change: [] }>
}

export type ProviderDetectorOptions = {
  home: string
  /** Of a command on the box: agent/exec/environment.ts. */
  baseEnv: Record<string, string>
  providers: Readonly<Record<ProviderName, Provider>>
  clock: Clock
  log: Logger
  spawnerKind?: SpawnerKind | null
  /** Until the first login shell and the watcher start. Default: 3 s, because the first commands of a box come first. */
  startDelayMs?: number
  loginTimeoutMs?: number
  versionTimeoutMs?: number
  installTimeoutMs?: number
}

const START_DELAY_MS = 3_000
const MIN_REFRESH_INTERVAL_MS = 250
/** For changes that are not watched: programs on the PATH, and credential files where watching has failed. */
const MAX_READINESS_AGE_MS = 10_000

/** Resolves with the readiness according to the base environment. The login environment follows. */
export async function createProviderDetector(
  options: ProviderDetectorOptions,
): Promise<WatchingProviderDetector> {
  const { home, baseEnv, providers, clock, log, startDelayMs = START_DELAY_MS } = options
  const prober = createProber(createSpawner(options.spawnerKind ?? null))
  const login = createLoginEnvironment({
    ...{ home, baseEnv, prober, clock, log },
    ...(options.loginTimeoutMs !== undefined && { timeoutMs: options.loginTimeoutMs }),
  })
  const versions = createProgramVersions({
    ...{ home, prober, clock },
    ...(options.versionTimeoutMs !== undefined && { timeoutMs: options.versionTimeoutMs }),
  })
  const installer = createInstaller({
    ...{ home, prober, log },
    ...(options.installTimeoutMs !== undefined && { timeoutMs: options.installTimeoutMs }),
  })
  const watcher = createCredentialWatcher(home, log, scheduleRefresh)
  const events = new EventEmitter<{ change: [] }>().setMaxListeners(0)
  const closing = new AbortController()

  let readiness: CodingAgents = { claude: NONE, codex: NONE, opencode: NONE, pi: NONE }
  let currentBoxEnv: Environment = {}
  let hasStarted = false
  let refreshedAt = 0
  let refreshTimer: NodeJS.Timeout | undefined
  let refreshing: Promise<void> = Promise.resolve()

  /** boxEnv overrides. */
  const toRunEnvironment = (env: Environment, boxEnv: Environment) =>
    withLocalPrograms({ ...env, ...boxEnv }, home)

  async function detectReadiness(provider: Provider, env: Environment): Promise<ProviderReadiness> {
    const program = await findProgram(provider.program, env.PATH)
    if (program === null || versions.hasFailed(program)) return 'not_installed'
    return (await provider.isSignedIn({ model: null, env, readText })) ? 'ready' : 'not_signed_in'
  }

  async function refresh(): Promise<void> {
    refreshedAt = performance.now()
    const loginEnv = hasStarted ? await login.read() : login.current()
    const env = toRunEnvironment(loginEnv, currentBoxEnv)
    const states = await Promise.all(
      PROVIDERS.map(async (name) => [name, await detectReadiness(providers[name], env)] as const),
    )
    const next: CodingAgents = { ...readiness, ...Object.fromEntries(states) }
    if (closing.signal.aborted) return
    if (PROVIDERS.some((name) => next[name] !== readiness[name])) {
      readiness = next
      events.emit('change')
    }
    if (hasStarted) await watcher.watch(PROVIDERS.flatMap((name) => providers[name].credentialFiles(env)))
  }

  /** A request during a refresh causes one more. */
  function scheduleRefresh(): void {
    if (refreshTimer !== undefined || closing.signal.aborted) return
    const delayMs = Math.max(0, refreshedAt + MIN_REFRESH_INTERVAL_MS - performance.now())
    refreshTimer = setTimeout(() => {
      refreshTimer = undefined
      refreshing = refreshing.then(refresh).catch(logFailure)
    }, delayMs)
    refreshTimer.unref()
  }
  const logFailure = (err: unknown) => log.warn({ err }, 'failed to check the coding agents; will retry')

  async function start(): Promise<void> {
    await sleep(startDelayMs, undefined, { signal: closing.signal, ref: false })
    hasStarted = true
    scheduleRefresh()
  }

  async function findInstalled(
    provider: Provider,
    env: Environment,
  ): Promise<{ program: FoundProgram; version: string }> {
    const { installPackage } = provider
    let program = await findProgram(provider.program, env.PATH)
    if (program === null && installPackage !== null) {
      await installer.install(provider, installPackage, env)
      program = await findProgram(provider.program, env.PATH)
    }
    if (program === null) throw missingProgramError(provider)
    const result = await versions.check(program, env)
    if ('failure' in result) throw brokenProgramError(provider, program.path, result.failure)
    return { program, version: result.version }
  }

  await refresh().catch(logFailure)
  const started = start().catch((error: unknown) => {
    if (!closing.signal.aborted) logFailure(error)
  })

  return {
    async resolve(name, { model, boxEnv }) {
      const provider = providers[name]
      const env = toRunEnvironment(await login.read(), boxEnv)
      try {
        const { program, version } = await findInstalled(provider, env)
        const selection = selectModel(model)
        const credentialInput = { model: selection, env, readText }
        if (!(await provider.isSignedIn(credentialInput)))
          throw signedOutError(name, selection?.backend ?? null, provider.signInHint(selection))
        const credential = await provider.credentialVariables(credentialInput)
        return { path: program.path, version, env: { ...env, ...credential } }
      } finally {
        scheduleRefresh()
      }
    },
    setBoxEnvironment(boxEnv) {
      currentBoxEnv = boxEnv
      scheduleRefresh()
    },
    readiness() {
      if (performance.now() - refreshedAt > MAX_READINESS_AGE_MS) scheduleRefresh()
      return readiness
    },
    events,
    async close() {
      closing.abort()
      clearTimeout(refreshTimer)
      await prober.close()
      await watcher.close()
      await started
      await refreshing
    },
  }
}

const NONE = 'not_installed'
