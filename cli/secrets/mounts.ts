// Mounts secrets on boxes, unmounts them, and lists the mounts of a box.
import type { z } from 'zod'
import type { Box } from '../../shared/api/boxes.ts'
import type { MountSecretRequest, SecretMount, secretMountListSchema } from '../../shared/api/secrets.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { addHints } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { describeUse } from './describe-secret.ts'
import { findSecret, loadSecrets } from './find-secret.ts'
import { formatHosts } from './secret-list.ts'

type Output = JsonOption & QuietOption
export type MountList = z.infer<typeof secretMountListSchema>

export const loadMounts = (client: Client, boxId: string): Promise<MountList> =>
  client.request('GET', `/boxes/${boxId}/secrets`)

export const MOUNTS: List<SecretMount> = {
  columns: [
    { header: 'VARIABLE', cell: ({ envName }) => envName },
    { header: 'SECRET', cell: ({ secret }) => secret.name },
    { header: 'PLACEHOLDER', cell: ({ secret }) => secret.placeholder, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
    { header: 'HOSTS', cell: ({ secret }) => formatHosts(secret.hosts) },
  ],
  getId: ({ id }) => id,
  getName: ({ envName }) => envName,
  filters: {
    variable: { get: ({ envName }) => envName },
    secret: { get: ({ secret }) => secret.name },
    host: { get: ({ secret }) => secret.hosts.join(' ') },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching secrets.' : 'No secrets are mounted. `box mount NAME SECRET` mounts one.',
}

/** What the agent of the box has found when it tested the way to the coordinator. */
export function describeBroker({ mounts, broker }: MountList, hostname: string): string | null {
  if (mounts.length === 0) return null
  const { state, message } = broker
  if (state === 'ready') return `secrets work on ${hostname}: its agent has tested it.`
  if (state === 'failed')
    return `secrets do not work on ${hostname}: ${sanitize(message ?? 'the test of its agent has failed')}`
  return `it is not known whether secrets work on ${hostname}: its agent tests it when the box runs.`
}

/** Returns the exit code. */
export async function mountSecrets(
  { client }: Session,
  boxName: string,
  typed: string[],
  { as, json, quiet }: Output & { as?: string },
): Promise<number> {
  if (as !== undefined && typed.length > 1)
    throw new CliError(EXIT.usage, '--as names the variable of one secret.')
  const batch = startBatch(typed)
  const box = await client.findBox(boxName)
  const secrets = await loadSecrets(client)
  await batch.run([...new Set(typed)], async (name) => {
    const secret = findSecret(secrets, name)
    const request: MountSecretRequest = { secretId: secret.id, envName: as ?? secret.name }
    const response = client.request<{ mount: SecretMount }>('POST', `/boxes/${box.id}/secrets`, request)
    const { mount } = await addHints(response, getMountHints(box, secret.name))
    if (json) printJson(mount)
    else if (!quiet)
      printStderr(
        `${box.hostname}: ${mount.envName} has the placeholder of ${secret.name}; ${describeUse(secret)}.`,
      )
  })
  if (!json && !quiet && batch.exitCode === EXIT.ok)
    printStderr(
      `New commands get the variable. \`${boxCommand()} mounts ${box.hostname}\` shows whether secrets work on the box.`,
    )
  return batch.exitCode
}

const getMountHints = ({ hostname }: Box, secret: string) => ({
  secret_not_granted: `\`${boxCommand()} secrets grant ${secret} ${hostname}\` grants it.`,
  env_name_taken: `\`${boxCommand()} mounts ${hostname}\` lists the variables, and --as names another one.`,
})

/** Returns the exit code. */
export async function unmountSecrets(
  { client }: Session,
  boxName: string,
  typed: string[],
  { json, quiet }: Output,
): Promise<number> {
  const batch = startBatch(typed)
  const box = await client.findBox(boxName)
  const { mounts } = await loadMounts(client, box.id)
  await batch.run([...new Set(typed)], async (text) => {
    for (const { id, envName, secret } of findMounts(mounts, text, box.hostname)) {
      await client.request('DELETE', `/boxes/${box.id}/secrets/${id}`)
      if (json) printJson({ id, envName, secret: secret.name, unmounted: true })
      else if (!quiet) printStderr(`${box.hostname}: ${envName} is unmounted`)
    }
  })
  return batch.exitCode
}

/** The mount with this variable or id, else all mounts of the secret. @throws CliError */
function findMounts(mounts: readonly SecretMount[], typed: string, hostname: string): SecretMount[] {
  const exact = mounts.filter(({ envName, id }) => envName === typed || id === typed)
  const found = exact.length > 0 ? exact : mounts.filter(({ secret }) => secret.name === typed)
  if (found.length > 0) return found
  throw new CliError(
    EXIT.notFound,
    `'${sanitize(typed)}' is not mounted on ${hostname}. \`box mounts ${hostname}\` lists the mounted secrets.`,
    { code: 'no_such_mount' },
  )
}
