// Finds API keys by id, name or a unique prefix of the id.
import type { ApiKey, KeyList } from '../../shared/api/keys.ts'
import { AMBIGUOUS_ID, findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'

const ID_PREFIX = 'key_'

export const loadKeys = async (client: Client, { revoked = false } = {}): Promise<ApiKey[]> =>
  (await client.requestBySession<KeyList>('GET', revoked ? '/keys?revoked=1' : '/keys')).keys

/** @throws CliError when no key or several keys match */
export function findKey(keys: readonly ApiKey[], typed: string): ApiKey {
  const named = keys.filter(({ name }) => name === typed)
  if (named.length > 1)
    throw new CliError(
      EXIT.usage,
      `${named.length} keys have the name '${sanitize(typed)}'. Use an id:${named.map(({ id }) => `\n  ${sanitize(id)}`).join('')}`,
      { code: AMBIGUOUS_ID },
    )
  const byId = typed.startsWith(ID_PREFIX)
    ? findByPrefix(keys, typed, { getId: ({ id }) => id, describe: ({ name }) => name, kind: 'keys' })
    : undefined
  const found = keys.find(({ id }) => id === typed) ?? named[0] ?? byId
  if (found !== undefined) return found
  throw new CliError(EXIT.notFound, `No such key: '${sanitize(typed)}'. Run \`box keys\` to list the keys.`, {
    code: 'no_such_key',
  })
}
