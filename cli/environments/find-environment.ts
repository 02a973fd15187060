// Loads the environments, and finds one by its name or id.
import type { Environment } from '../../shared/api/environments.ts'
import { suggestNames } from '../arguments/similar-names.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

export const loadEnvironments = async (client: Client): Promise<Environment[]> =>
  (await client.request<{ environments: Environment[] }>('GET', '/environments')).environments

/** @throws CliError */
export function findEnvironment(environments: readonly Environment[], typed: string): Environment {
  const found = environments.find(({ name }) => name === typed) ?? environments.find(({ id }) => id === typed)
  if (found !== undefined) return found
  const names = environments.map(({ name }) => name)
  throw new CliError(
    EXIT.notFound,
    `No such environment: '${sanitize(typed)}'.${suggestNames(typed, names)} \`box environments\` lists the environments, \`box environments create NAME\` creates one.`,
    { code: 'no_such_environment' },
  )
}
