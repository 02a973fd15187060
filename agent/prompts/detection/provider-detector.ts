// Finds the coding-agent CLIs and their credentials on the box, and reports which ones are ready.
import type { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import type { ProviderName } from '../../../shared/api/prompts.ts'
import type { Clock } from '../../../shared/clock.ts'
import { createSpawner, type SpawnerKind } from '../../exec/spawner.ts'
import { selectModel } from '../providers/select-model.ts'
import type { Provider } from '../providers/types.ts'
import type { ProviderDetector } from '../types.ts'
import { findProgram } from './file-identity.ts'
import { createInstaller, type Installer } from './install-program.ts'
import { createLoginVariables, type Environment, toRunVariables } from './login-variables.ts'
import { brokenProgramError, missingProgramError, signedOutError } from './messages.ts'
import { createProber } from './probe.ts'
import { createProgramVersions, type ProgramVersions } from './program-versions.ts'
import { readText } from './read-text.ts'
import { ReadinessMonitor } from './readiness-monitor.ts'

/** The vitals report readiness(), and send a heartbeat after 'change'. */
export type WatchingProviderDetector = ProviderDetector & {
  /** 'change' means that readiness() returns another object. Emitted at most every 250 ms. */
  events: EventEmitter<{ change: [] }>
}

export type ProviderDetectorOptions = {
  home: string
  /** The environment of a command on the box: agent/exec/environment.ts. */
  baseEnv: Record<string, string>
  providers: Readonly<Record<ProviderName, Provider>>
  clock: Clock
  log: Logger
  spawnerKind?: SpawnerKind | null
  /** Time until the first login shell and the watcher start. Default: 3 s: the first commands of a box have priority. */
  startDelayMs?: number
  loginTimeoutMs?: number
  versionTimeoutMs?: number
  installTimeoutMs?: number
}

const START_DELAY_MS = 3_000

/** Resolves with the readiness according to the base environment. The login environment follows. */
export async function createProviderDetector(
  options: ProviderDetectorOptions,
): Promise<WatchingProviderDetector> {
  const { home, baseEnv, providers, clock, log, startDelayMs = START_DELAY_MS } = options
  const prober = createProber(createSpawner(options.spawnerKind ?? null))
  const login = createLoginVariables({
    home,
    baseEnv,
    prober,
    clock,
    log,
    ...(options.loginTimeoutMs !== undefined && { timeoutMs: options.loginTimeoutMs }),
  })
  const versions = createProgramVersions({
    home,
    prober,
    clock,
    ...(options.versionTimeoutMs !== undefined && { timeoutMs: options.versionTimeoutMs }),
  })
  const installer = createInstaller({
    home,
    prober,
    log,
    ...(options.installTimeoutMs !== undefined && { timeoutMs: options.installTimeoutMs }),
  })
  const monitor = new ReadinessMonitor({ home, providers, login, versions, log, startDelayMs })
  await monitor.start()

  return {
    async resolve(name, { model, boxEnv }) {
      const provider = providers[name]
      const env = toRunVariables(await login.read(), boxEnv, home)
      try {
        const { path, version } = await findInstalled(provider, env, { installer, versions })
        return { path, version, env: { ...env, ...(await findCredential(provider, model, env)) } }
      } finally {
        monitor.scheduleRefresh()
      }
    },
    setBoxVariables: (boxEnv) => monitor.setBoxVariables(boxEnv),
    readiness: () => monitor.current(),
    events: monitor.events,
    async close() {
      await Promise.all([monitor.close(), prober.close()])
    },
  }
}

/** Installs the program if it is missing and can be installed. @throws ApiError provider_not_installed */
async function findInstalled(
  provider: Provider,
  env: Environment,
  { installer, versions }: { installer: Installer; versions: ProgramVersions },
): Promise<{ path: string; version: string }> {
  const { installPackage } = provider
  let program = await findProgram(provider.program, env.PATH)
  if (program === null && installPackage !== null) {
    await installer.install(provider, installPackage, env)
    program = await findProgram(provider.program, env.PATH)
  }
  if (program === null) throw missingProgramError(provider)
  const result = await versions.check(program, env)
  if ('failure' in result) throw brokenProgramError(provider, program.path, result.failure)
  return { path: program.path, version: result.version }
}

/** Returns the variables of the credential. @throws ApiError provider_not_signed_in */
async function findCredential(
  provider: Provider,
  model: string | null,
  env: Environment,
): Promise<Record<string, string>> {
  const selection = selectModel(model)
  const input = { model: selection, env, readText }
  if (!(await provider.isSignedIn(input)))
    throw signedOutError(provider.name, selection?.backend ?? null, provider.signInHint(selection))
  return provider.credentialVariables(input)
}
