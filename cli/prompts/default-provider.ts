// The coding agent of a prompt that names none.
import type { ProviderName } from '../../shared/api/prompts.ts'
import { PROVIDERS } from '../../shared/field-values.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

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
