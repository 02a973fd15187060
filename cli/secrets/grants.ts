// Grants a secret to boxes and to the owners of boxes, and removes grants.

import type { Grantee, Secret, SecretGrant } from '../../shared/api/secrets.ts'
import { formatCount } from '../../shared/format-count.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { describeScope } from './describe-secret.ts'
import { findSecret, loadSecrets } from './find-secret.ts'

type Output = JsonOption & QuietOption

/** An email address, the id of a user, or the name or id of a box. @throws CliError */
export async function findGrantee(client: Client, typed: string): Promise<Grantee> {
  if (typed.includes('@')) return { email: typed }
  if (typed.startsWith('usr_')) return { userId: typed }
  return { boxId: (await client.findBox(typed)).id }
}

export async function grantSecret(
  { client }: Session,
  name: string,
  typed: readonly string[],
  { json, quiet }: Output,
): Promise<undefined> {
  const before = findSecret(await loadSecrets(client), name)
  const grantees = []
  for (const text of typed) grantees.push(await findGrantee(client, text))
  for (const grantee of grantees) {
    const { grant } = await client.request<{ grant: SecretGrant }>(
      'POST',
      `/secrets/${before.id}/grants`,
      grantee,
    )
    if (json) printJson(grant)
  }
  if (json || quiet) return
  const secret = findSecret(await loadSecrets(client), before.id)
  const unmounted = before.mountCount - secret.mountCount
  const note =
    unmounted > 0
      ? ` It was unmounted from ${formatCount(unmounted, 'box', 'boxes')} that no grant covers.`
      : ''
  printStderr(`${secret.name}: ${describeScope(secret)}.${note}`)
}

export async function ungrantSecret(
  { client }: Session,
  name: string,
  typed: readonly string[],
  { json, quiet }: Output,
): Promise<undefined> {
  const before = findSecret(await loadSecrets(client), name)
  const grants = typed.map((text) => findGrant(before, text))
  for (const grant of new Set(grants)) {
    await client.request('DELETE', `/secrets/${before.id}/grants/${grant.id}`)
    if (json) printJson({ ...grant, removed: true })
  }
  if (json || quiet) return
  const secret = findSecret(await loadSecrets(client), before.id)
  printStderr(`${secret.name}: ${describeScope(secret)}.`)
}

/** Removes all grants, so that every box of the workspace may use the secret. Returns the exit code. */
export async function openSecret(
  { client, signal }: Session,
  name: string,
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  const before = findSecret(await loadSecrets(client), name)
  if (!yes) {
    const effect = 'every box of the workspace that is not restricted may use'
    if (!canAsk(json ?? false))
      throw new CliError(EXIT.failed, `${before.name} would lose its grants, and ${effect} it. Add --yes.`)
    const question = `Without its grants, ${effect} ${before.name}. Remove them?`
    if (!(await confirm(sanitize(question), signal))) {
      printMessage('the grants stay.')
      return EXIT.failed
    }
  }
  const { secret } = await client.request<{ secret: Secret }>('PATCH', `/secrets/${before.id}`, {
    scope: 'workspace',
  })
  if (json) printJson(secret)
  else if (!quiet) printStderr(`${secret.name}: ${describeScope(secret)}.`)
  return EXIT.ok
}

/** @throws CliError */
function findGrant({ name, grants }: Secret, typed: string): SecretGrant {
  const found = grants.find(
    ({ id, boxId, hostname, userId, email }) =>
      [id, boxId, hostname, userId].includes(typed) || email === typed.toLowerCase(),
  )
  if (found !== undefined) return found
  throw new CliError(
    EXIT.notFound,
    `${name} is not granted to '${sanitize(typed)}'. \`box secrets show ${name}\` shows its grants.`,
    { code: 'no_such_grant' },
  )
}
