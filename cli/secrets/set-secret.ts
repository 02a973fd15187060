// Creates a secret or changes it, replaces its value, and deletes secrets.

import type { CreateSecretRequest, PatchSecretRequest, Secret } from '../../shared/api/secrets.ts'
import { formatCount } from '../../shared/format-count.ts'
import { KNOWN_SECRETS } from '../../shared/known-secrets.ts'
import type { SecretLocation } from '../../shared/secret-locations.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { NO_VALUE_ARGUMENT } from '../arguments/usage-hints.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { addHints } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { describeScope, describeUse } from './describe-secret.ts'
import { findByName, findSecret, loadSecrets } from './find-secret.ts'
import { findGrantee } from './grants.ts'
import { readValue, type ValueSource } from './read-value.ts'

type Output = JsonOption & QuietOption
export type SetOptions = Output &
  ValueSource & {
    host?: string[]
    grant?: string[]
    description?: string
    placeholderPrefix?: string
    keepValue?: boolean
    in?: SecretLocation[]
  }

export async function setSecret(session: Session, name: string, options: SetOptions): Promise<undefined> {
  assertNoValue(name)
  const { client, signal } = session
  const existing = findByName(await loadSecrets(client), name)
  if (existing === undefined) await createSecret(client, name, options, signal)
  else await changeSecret(client, existing, options, signal)
}

/** `box secrets set TOKEN=abc`. The message does not repeat the value. @throws CliError */
export function assertNoValue(name: string): void {
  if (name.includes('=')) throw new CliError(EXIT.usage, NO_VALUE_ARGUMENT)
}

async function createSecret(
  client: Client,
  name: string,
  options: SetOptions,
  signal: AbortSignal,
): Promise<void> {
  const { description, grant = [], placeholderPrefix, json, quiet } = options
  if (options.keepValue)
    throw new CliError(
      EXIT.notFound,
      `No such secret: '${sanitize(name)}'. Without --keep-value, it is created.`,
      {
        code: 'no_such_secret',
      },
    )
  const known = Object.hasOwn(KNOWN_SECRETS, name) ? KNOWN_SECRETS[name] : undefined
  const hosts = options.host ?? [...(known?.hosts ?? [])]
  const grants = []
  for (const grantee of grant) grants.push(await findGrantee(client, grantee))
  const value = await readValue(name, options, signal)
  const request: CreateSecretRequest = {
    name,
    value,
    hosts,
    ...(grants.length > 0 && { grants }),
    ...(options.in !== undefined && { in: options.in }),
    ...(description !== undefined && { description }),
    ...(placeholderPrefix !== undefined && { placeholderPrefix }),
  }
  const response = client.request<{ secret: Secret }>('POST', '/secrets', request)
  const { secret } = await addHints(response, SECRET_HINTS)
  if (json) printJson(secret)
  else if (!quiet) {
    const origin = options.host === undefined && known !== undefined ? ', which box knows for this name' : ''
    printStderr(
      `${secret.name}: created; ${describeUse(secret)}${origin}; ${describeScope(secret)}. Next: \`${boxCommand()} mount NAME ${secret.name}\``,
    )
  }
  warnWithoutHosts(secret)
  warnOfLines(secret, value)
}

export const SECRET_HINTS = { secret_limit: '`box secrets rm` deletes secrets.' }

function warnWithoutHosts({ name, hosts }: Secret): void {
  if (hosts.length > 0) return
  printMessage(
    `${name} has no hosts: its value is used nowhere. Set the hosts whose requests need it: \`box secrets set ${name} --keep-value --host api.example.com\`.`,
  )
}

export function warnOfLines({ name, in: locations }: Secret, value: string): void {
  if (!/[\r\n]/.test(value) || locations.some((location) => location !== 'header')) return
  printMessage(
    `${name} has several lines: in headers, it is used in \`Authorization: Basic\` only. If a program sends it in a body, \`box secrets set ${name} --keep-value --in body\` allows that.`,
  )
}

async function changeSecret(
  client: Client,
  { id, name }: Secret,
  options: SetOptions,
  signal: AbortSignal,
): Promise<void> {
  const { host, description, grant = [], keepValue, placeholderPrefix, json, quiet } = options
  if (placeholderPrefix !== undefined)
    throw new CliError(EXIT.usage, `${name} exists, and its placeholder never changes.`)
  const hasChange = [host, options.in, description].some((option) => option !== undefined)
  if (keepValue && !hasChange && grant.length === 0)
    throw new CliError(
      EXIT.usage,
      'Nothing to set. Use --host, --in, --description or --grant, or omit --keep-value.',
    )
  const grants = []
  for (const grantee of grant) grants.push(await findGrantee(client, grantee))
  const value = keepValue ? undefined : await readValue(name, options, signal)
  const request: PatchSecretRequest = {
    ...(value !== undefined && { value }),
    ...(host !== undefined && { hosts: host }),
    ...(options.in !== undefined && { in: options.in }),
    ...(description !== undefined && { description: description === '' ? null : description }),
  }
  if (Object.keys(request).length > 0) await client.request('PATCH', `/secrets/${id}`, request)
  for (const grantee of grants) await client.request('POST', `/secrets/${id}/grants`, grantee)
  const secret = findSecret(await loadSecrets(client), id)
  if (json) printJson(secret)
  else if (!quiet)
    printStderr(
      `${name}: ${keepValue ? 'changed' : 'the value is replaced for new requests'}; ${describeUse(secret)}; ${describeScope(secret)}.`,
    )
  warnWithoutHosts(secret)
  warnOfLines(secret, value ?? '')
}

export async function rotateSecret(
  { client, signal }: Session,
  name: string,
  { json, quiet, ...source }: Output & ValueSource,
): Promise<undefined> {
  assertNoValue(name)
  const { id } = findSecret(await loadSecrets(client), name)
  const value = await readValue(name, source, signal)
  const { secret } = await client.request<{ secret: Secret }>('PATCH', `/secrets/${id}`, { value })
  if (json) printJson(secret)
  else if (!quiet)
    printStderr(`${secret.name}: the value is replaced for new requests; the placeholder is the same.`)
}

/** Returns the exit code. */
export async function deleteSecrets(
  { client, signal }: Session,
  typed: string[],
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  const batch = startBatch(typed)
  const all = await loadSecrets(client)
  const secrets = await batch.run([...new Set(typed)], async (name) => findSecret(all, name))
  if (secrets.length === 0) return batch.exitCode
  const question = `Delete ${secrets.map(describeMounts).join(', ')}? Boxes that have it mounted cannot use it any more.`
  if (!yes && canAsk(json ?? false) && !(await confirm(question, signal))) {
    printMessage('nothing was deleted.')
    return EXIT.failed
  }
  await batch.run(secrets, async ({ id, name }) => {
    await client.request('DELETE', `/secrets/${id}`)
    if (json) printJson({ id, name, deleted: true })
    else if (!quiet) printStderr(`${name}: deleted`)
  })
  return batch.exitCode
}

const describeMounts = ({ name, mountCount }: Secret): string =>
  mountCount === 0 ? name : `${name} (${formatCount(mountCount, 'mount')})`
