// The values of prompt fields that the command line knows. Copied from shared/api/prompts.ts: importing it loads zod.
import type { ProviderName, ReasoningEffort, RunStatus } from '../../shared/api/prompts.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/output.ts'

const keysOf = <K extends string>(record: Record<K, true>): K[] => Object.keys(record) as K[]

export const PROVIDERS = keysOf<ProviderName>({ claude: true, codex: true, opencode: true, pi: true })
export const EFFORTS = keysOf<ReasoningEffort>({ low: true, medium: true, high: true })
export const RUN_STATUSES = keysOf<RunStatus>({ running: true, done: true, failed: true, interrupted: true })

export const PROVIDER_VARIABLE = 'BOXWOOD_PROVIDER'
const DEFAULT_PROVIDER: ProviderName = 'claude'

/** The coding agent of a prompt without --provider. @throws CliError when the variable has another value */
export function getDefaultProvider(env: NodeJS.ProcessEnv): ProviderName {
  const name = env[PROVIDER_VARIABLE] || DEFAULT_PROVIDER
  const provider = PROVIDERS.find((known) => known === name)
  if (provider !== undefined) return provider
  throw new CliError(
    EXIT.usage,
    `${PROVIDER_VARIABLE} is '${sanitize(name)}', and must be one of ${PROVIDERS.join(', ')}.`,
  )
}
