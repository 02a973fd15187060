// Loads the environments, and finds one by its name or id.
import type { Environment } from '../../shared/api/environments.ts'
import { NoSuchNameError } from '../arguments/no-such-name.ts'
import type { Client } from '../connection/client.ts'

export const loadEnvironments = async (client: Client): Promise<Environment[]> =>
  (await client.request<{ environments: Environment[] }>('GET', '/environments')).environments

/** @throws CliError */
export function findEnvironment(environments: readonly Environment[], typed: string): Environment {
  const found = environments.find(({ name }) => name === typed) ?? environments.find(({ id }) => id === typed)
  if (found !== undefined) return found
  throw new NoSuchNameError({
    kind: 'environment',
    typed,
    names: environments.map(({ name }) => name),
    advice: '`box environments` lists the environments, `box environments create NAME` creates one.',
    code: 'no_such_environment',
  })
}
