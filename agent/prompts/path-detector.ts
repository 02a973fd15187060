// Finds the coding agents on the PATH of the agent. Installs nothing.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { ApiError } from '../../shared/errors.ts'
import { providers } from './providers/providers.ts'
import { selectModel } from './select-model.ts'
import type { ProviderDetector } from './types.ts'

const run = promisify(execFile)
const VERSION_TIMEOUT_MS = 10_000

/** @param baseEnv the environment of commands */
export function createPathDetector(baseEnv: Readonly<Record<string, string>>): ProviderDetector {
  return {
    async resolve(name, { model, boxEnv }) {
      const provider = providers[name]
      const env = { ...baseEnv, ...boxEnv }
      const path = await findProgram(provider.program, env.PATH ?? '')
      if (path === null)
        throw new ApiError(
          'provider_not_installed',
          `${name} is not on the PATH of the box. Install it first.`,
        )
      const selected = selectModel(model)
      const readText = (file: string) => readFile(file, 'utf8').catch(() => null)
      if (!(await provider.isSignedIn({ model: selected, env, readText })))
        throw new ApiError('provider_not_signed_in', provider.signInHint(selected))
      const { stdout } = await run(path, ['--version'], { env, timeout: VERSION_TIMEOUT_MS })
      return { path, env, version: /\d+\.\d+\.\d+/.exec(stdout)?.[0] ?? '' }
    },
    readiness: () => ({
      ...{ claude: 'not_installed', codex: 'not_installed', opencode: 'not_installed', pi: 'not_installed' },
    }),
    close: () => Promise.resolve(),
  }
}

async function findProgram(name: string, path: string): Promise<string | null> {
  for (const dir of path.split(delimiter)) {
    const file = join(dir, name)
    const isExecutable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isExecutable) return file
  }
  return null
}
