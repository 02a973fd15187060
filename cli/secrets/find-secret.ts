// Loads the secrets, and finds one by its name or id.
import type { Secret } from '../../shared/api/secrets.ts'
import { NoSuchNameError } from '../arguments/no-such-name.ts'
import type { Client } from '../connection/client.ts'

/** @param boxId only the secrets that the box may mount */
export async function loadSecrets(client: Client, boxId?: string): Promise<Secret[]> {
  const query = boxId === undefined ? '' : `?${new URLSearchParams({ box: boxId })}`
  return (await client.request<{ secrets: Secret[] }>('GET', `/secrets${query}`)).secrets
}

export const findByName = (secrets: readonly Secret[], typed: string): Secret | undefined =>
  secrets.find(({ name }) => name === typed) ?? secrets.find(({ id }) => id === typed)

/** @throws CliError */
export function findSecret(secrets: readonly Secret[], typed: string): Secret {
  const found = findByName(secrets, typed)
  if (found !== undefined) return found
  throw new NoSuchNameError({
    kind: 'secret',
    typed,
    names: secrets.map(({ name }) => name),
    advice: '`box secrets` lists the secrets, `box secrets set NAME` creates one.',
    code: 'no_such_secret',
  })
}
