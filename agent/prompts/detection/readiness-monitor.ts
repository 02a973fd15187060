// Checks which coding agents are installed and signed in: at the start, after changes that are watched, and at intervals.
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { CodingAgents } from '../../../shared/api/boxes.ts'
import type { ProviderName, ProviderReadiness } from '../../../shared/api/prompts.ts'
import { PROVIDERS } from '../../../shared/field-values.ts'
import type { Provider } from '../providers/types.ts'
import { type CredentialWatcher, createCredentialWatcher } from './credential-watcher.ts'
import { findProgram } from './file-identity.ts'
import { type Environment, type LoginVariables, toRunVariables } from './login-variables.ts'
import type { ProgramVersions } from './program-versions.ts'
import { readText } from './read-text.ts'

export type ReadinessMonitorOptions = {
  home: string
  providers: Readonly<Record<ProviderName, Provider>>
  login: LoginVariables
  versions: Pick<ProgramVersions, 'hasFailed'>
  log: Logger
  /** Time until the first login shell and the watcher start. */
  startDelayMs: number
}

const MIN_REFRESH_INTERVAL_MS = 250
/** Bounds the age because some changes are not watched: programs on the PATH, and files where watching has failed. */
const MAX_READINESS_AGE_MS = 10_000
const NONE = 'not_installed'

export class ReadinessMonitor {
  /** 'change' means that current() returns another object. Emitted at most every 250 ms. */
  readonly events = new EventEmitter<{ change: [] }>().setMaxListeners(0)
  readonly #options: ReadinessMonitorOptions
  readonly #watcher: CredentialWatcher
  readonly #closing = new AbortController()
  #readiness: CodingAgents = { claude: NONE, codex: NONE, opencode: NONE, pi: NONE }
  #boxEnv: Environment = {}
  /** Whether the start delay has passed. Until then no login shell runs, and no file is watched. */
  #hasStarted = false
  #started: Promise<void> = Promise.resolve()
  #refreshedAt = 0
  #timer: NodeJS.Timeout | undefined
  #refreshing: Promise<void> = Promise.resolve()

  constructor(options: ReadinessMonitorOptions) {
    this.#options = options
    this.#watcher = createCredentialWatcher(options.home, options.log, () => this.scheduleRefresh())
  }

  /** Resolves with the readiness according to the base environment. The login environment follows. */
  async start(): Promise<void> {
    await this.#refresh().catch(this.#logFailure)
    this.#started = this.#startAfterDelay().catch((error: unknown) => {
      if (!this.#closing.signal.aborted) this.#logFailure(error)
    })
  }

  current(): CodingAgents {
    if (performance.now() - this.#refreshedAt > MAX_READINESS_AGE_MS) this.scheduleRefresh()
    return this.#readiness
  }

  /** @param boxEnv overrides the login environment */
  setBoxVariables(boxEnv: Environment): void {
    this.#boxEnv = boxEnv
    this.scheduleRefresh()
  }

  /** A request during a refresh causes one more. */
  scheduleRefresh(): void {
    if (this.#timer !== undefined || this.#closing.signal.aborted) return
    const delayMs = Math.max(0, this.#refreshedAt + MIN_REFRESH_INTERVAL_MS - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#refreshing = this.#refreshing.then(() => this.#refresh()).catch(this.#logFailure)
    }, delayMs).unref()
  }

  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    await this.#watcher.close()
    await this.#started
    await this.#refreshing
  }

  async #startAfterDelay(): Promise<void> {
    await sleep(this.#options.startDelayMs, undefined, { signal: this.#closing.signal, ref: false })
    this.#hasStarted = true
    this.scheduleRefresh()
  }

  async #refresh(): Promise<void> {
    const { home, providers, login } = this.#options
    this.#refreshedAt = performance.now()
    const loginEnv = this.#hasStarted ? await login.read() : login.current()
    const env = toRunVariables(loginEnv, this.#boxEnv, home)
    const states = await Promise.all(
      PROVIDERS.map(async (name) => [name, await this.#detect(providers[name], env)] as const),
    )
    const next: CodingAgents = { ...this.#readiness, ...Object.fromEntries(states) }
    if (this.#closing.signal.aborted) return
    if (PROVIDERS.some((name) => next[name] !== this.#readiness[name])) {
      this.#readiness = next
      this.events.emit('change')
    }
    if (this.#hasStarted)
      await this.#watcher.watch(PROVIDERS.flatMap((name) => providers[name].credentialFiles(env)))
  }

  async #detect(provider: Provider, env: Environment): Promise<ProviderReadiness> {
    const program = await findProgram(provider.program, env.PATH)
    if (program === null || this.#options.versions.hasFailed(program)) return NONE
    return (await provider.isSignedIn({ model: null, env, readText })) ? 'ready' : 'not_signed_in'
  }

  readonly #logFailure = (err: unknown): void =>
    this.#options.log.warn({ err }, 'failed to check the coding agents; will retry')
}
