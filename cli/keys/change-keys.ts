// Creates, changes, rotates and revokes API keys.
import type { ApiKey, CreateKeyRequest, KeyWithSecret, UpdateKeyRequest } from '../../shared/api/keys.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { loadBoxNames } from '../boxes/box-names.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { findKey, loadKeys } from './find-key.ts'
import { formatAccess, formatExpiry } from './key-list.ts'
import { type LimitOptions, toLimits } from './key-options.ts'

export type CreateOptions = JsonOption & QuietOption & LimitOptions & { user: boolean }

export async function createKey(
  { client }: Session,
  name: string,
  options: CreateOptions,
): Promise<undefined> {
  const limits = await toLimits(client, options)
  const request: CreateKeyRequest = { name, ...limits, ...(!options.user && { user: null }) }
  const created = await client.requestBySession<KeyWithSecret>('POST', '/keys', request)
  await printSecret(client, created, 'created', options)
}

export async function rotateKey(
  { client }: Session,
  typed: string,
  options: JsonOption & QuietOption,
): Promise<undefined> {
  const { id } = findKey(await loadKeys(client), typed)
  const rotated = await client.requestBySession<KeyWithSecret>('POST', `/keys/${id}/rotate`)
  await printSecret(client, rotated, 'rotated: the earlier secret is not valid any more', options)
}

/** The secret is all of stdout. */
async function printSecret(
  client: Client,
  response: KeyWithSecret,
  change: string,
  { json, quiet }: JsonOption & QuietOption,
): Promise<void> {
  if (json) printJson(response)
  else {
    if (!quiet)
      printStderr(
        `${await describe(client, response.key)} ${change}.${warnOfDeletes(response.key)} The secret is printed only now:`,
      )
    print(response.secret)
  }
}

/** A key for some boxes is often meant for commands on them. */
const warnOfDeletes = ({ boxIds, access }: ApiKey): string =>
  boxIds !== null && (access === null || access.boxes === 'write')
    ? ' It may also delete, stop and resize them: with --access boxes=run it could only use them.'
    : ''

async function describe(client: Client, key: ApiKey): Promise<string> {
  const getBoxName = key.boxIds === null ? String : await loadBoxNames(client)
  const expiry = key.expiresAt === null ? 'never expires' : `expires ${formatExpiry(key, Date.now())}`
  return sanitize(`Key ${key.name} (${key.id}; access ${formatAccess(key, getBoxName)}; ${expiry})`)
}

export type SetOptions = JsonOption & QuietOption & LimitOptions & { name?: string; allBoxes?: boolean }

export async function setKey({ client }: Session, typed: string, options: SetOptions): Promise<undefined> {
  const { name, allBoxes, json, quiet } = options
  const request: UpdateKeyRequest = {
    ...(await toLimits(client, options)),
    ...(name !== undefined && { name }),
    ...(allBoxes && { boxIds: null }),
  }
  if (Object.keys(request).length === 0)
    throw new CliError(EXIT.usage, 'Nothing to set. Use --name, --expires, --box, --all-boxes or --access.')
  const { id } = findKey(await loadKeys(client), typed)
  const { key } = await client.requestBySession<{ key: ApiKey }>('PATCH', `/keys/${id}`, request)
  if (json) printJson(key)
  else if (!quiet) printStderr(`${await describe(client, key)}.`)
}

export type RemoveOptions = JsonOption & QuietOption & { yes?: boolean; force?: boolean }

/** Returns the exit code. */
export async function revokeKeys(session: Session, typed: string[], options: RemoveOptions): Promise<number> {
  const { client, signal } = session
  const { yes, force, json, quiet } = options
  const batch = startBatch(typed)
  const keys = await loadKeys(client)
  const found = await batch.run([...new Set(typed)], async (name) => {
    try {
      return findKey(keys, name)
    } catch (error) {
      if (force && error instanceof CliError && error.exitCode === EXIT.notFound) return null
      throw error
    }
  })
  const revoked = found.filter((key) => key !== null)
  if (revoked.length === 0) return batch.exitCode
  const names = revoked.map(({ name, id }) => `${sanitize(name)} (${id})`).join(', ')
  const mustAsk = !yes && !force && canAsk(json ?? false)
  if (mustAsk && !(await confirm(`Revoke ${names}? Programs that use it stop working.`, signal))) {
    printMessage('nothing was revoked.')
    return EXIT.failed
  }
  await batch.run(revoked, async ({ id, name }) => {
    await client.requestBySession('DELETE', `/keys/${id}`)
    if (json) printJson({ id, name, revoked: true })
    else if (!quiet) printStderr(`${sanitize(name)}: revoked`)
  })
  return batch.exitCode
}
