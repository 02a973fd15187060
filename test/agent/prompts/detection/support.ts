// A detector in a temporary home directory, with fake providers and fake programs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import {
  createProviderDetector,
  type ProviderDetectorOptions,
} from '../../../../agent/prompts/detection/provider-detector.ts'
import type { Provider } from '../../../../agent/prompts/providers/types.ts'
import type { ProviderName } from '../../../../shared/api/prompts.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { ApiError } from '../../../../shared/errors.ts'
import { PROVIDERS } from '../../../../shared/field-values.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const SYSTEM_PATH = '/usr/local/bin:/usr/bin:/bin'
const silentLog = pino({ level: process.env.TEST_LOG ?? 'silent' })

/** The credential of a fake provider is a file in a directory that nothing creates, or the variable NAME_KEY. */
const CREDENTIALS: Record<ProviderName, string> = {
  claude: '.claude/credentials.json',
  codex: '.codex/auth.json',
  opencode: '.local/share/opencode/auth.json',
  pi: '.pi/agent/auth.json',
}

function createFakeProvider(name: ProviderName, home: string): Provider {
  const file = join(home, CREDENTIALS[name])
  return {
    name,
    program: name,
    installPackage: name === 'opencode' || name === 'pi' ? `fake-${name}@1.2.3` : null,
    interruptSignal: 'INT',
    defaultAuto: false,
    buildCommand: () => ({ args: [], env: {} }),
    encodePrompt: (prompt) => prompt,
    mapLine: (_line, state) => ({ events: [], state }),
    resolveUnfinished: () => null,
    credentialFiles: () => [file],
    isSignedIn: async ({ env, readText }) =>
      Boolean(env[`${name.toUpperCase()}_KEY`]) || Boolean(await readText(file)),
    credentialVariables: async ({ env }): Promise<Record<string, string>> =>
      env.OTHER_KEY === undefined ? {} : { CREDENTIAL: env.OTHER_KEY },
    signInHint: (model) => `Sign in to ${name}${model === null ? '' : ` for ${model.full}`}.`,
  }
}

export type TestBox = ReturnType<typeof createTestBox>

/** A home directory with a ~/.profile that adds ~/bin to the PATH. */
export function createTestBox(t: Test, { shell = '/bin/sh' } = {}) {
  const home = createTempDir(t, 'detection')
  const write = (path: string, text: string, mode = 0o644) => {
    const file = join(home, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { mode })
    return file
  }
  const box = {
    home,
    write,
    profile: (...lines: string[]) =>
      write('.profile', ['PATH=$HOME/bin:$PATH', 'export PATH', ...lines, ''].join('\n')),
    /** Writes a program into ~/bin. It counts its starts in ~/NAME.starts. */
    program: (name: string, body: string, dir = 'bin') =>
      write(`${dir}/${name}`, `#!/bin/sh\necho >>'${home}/${name}.starts'\n${body}\n`, 0o755),
    countStarts: (name: string): number => {
      try {
        return readFileSync(join(home, `${name}.starts`), 'utf8').length
      } catch {
        return 0
      }
    },
    signIn: (name: ProviderName) => write(CREDENTIALS[name], '{"key":"placeholder"}'),
    credentialFile: (name: ProviderName) => join(home, CREDENTIALS[name]),
    async detect(options: Partial<ProviderDetectorOptions> = {}) {
      const detector = await createProviderDetector({
        home,
        baseEnv: { HOME: home, PATH: SYSTEM_PATH, SHELL: shell, BASE: 'of the base environment' },
        providers: {
          claude: createFakeProvider('claude', home),
          codex: createFakeProvider('codex', home),
          opencode: createFakeProvider('opencode', home),
          pi: createFakeProvider('pi', home),
        },
        clock: systemClock,
        log: silentLog,
        startDelayMs: 0,
        ...options,
      })
      t.teardown(() => detector.close())
      const resolve = (
        name: ProviderName,
        boxEnv: Record<string, string> = {},
        model: string | null = null,
      ) => detector.resolve(name, { model, boxEnv })
      return {
        ...detector,
        resolve,
        /** Resolves with the error of a resolve() that must fail. */
        async fail(name: ProviderName, boxEnv: Record<string, string> = {}, model: string | null = null) {
          const result = await resolve(name, boxEnv, model).catch((error: unknown) => error)
          if (result instanceof ApiError) return { code: result.code, message: result.message }
          throw new Error(`no ApiError: ${String(result)}`)
        },
        waitForReadiness: (name: ProviderName, readiness: string) =>
          waitUntil(`${name} is ${readiness}`, () => detector.readiness()[name] === readiness),
        waitUntilWatching: () =>
          waitUntil('the login shell has run', () => detector.readiness().claude !== 'not_installed'),
      }
    },
  }
  box.profile()
  return box
}

/** Programs of all providers, which work. */
export function addPrograms(box: TestBox): void {
  for (const name of PROVIDERS) box.program(name, 'echo 1.2.3')
}
