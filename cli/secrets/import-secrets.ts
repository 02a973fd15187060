// box secrets import: creates the secrets of a .env file, and replaces the values of those that exist.
import { existsSync } from 'node:fs'
import type { CreateSecretRequest, PatchSecretRequest, Secret } from '../../shared/api/secrets.ts'
import { SECRET_NAME_PATTERN } from '../../shared/field-values.ts'
import { KNOWN_SECRETS } from '../../shared/known-secrets.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import { addHints } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import { readEnvFile } from '../env/env-file.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { describeUse } from './describe-secret.ts'
import { loadSecrets } from './find-secret.ts'
import { assertValue } from './read-value.ts'
import { assertNoValue, SECRET_HINTS, warnOfLines } from './set-secret.ts'

export type ImportOptions = JsonOption & QuietOption & { host?: string[]; replace?: boolean }

/** `existing` undefined: the secret is created with the hosts. */
type Import = { name: string; value: string; hosts: readonly string[]; existing: Secret | undefined }

/** @param path `-` is stdin @throws CliError before a secret is written, when the file has one that cannot be set */
export async function importSecrets(
  { client }: Session,
  path: string,
  { host = [], replace = false, json, quiet }: ImportOptions,
): Promise<undefined> {
  if (!existsSync(path)) assertNoValue(path)
  const variables = Object.entries(readEnvFile(path))
  assertNames(variables.map(([name]) => name))
  for (const [name, value] of variables) assertValue(name, value)
  const secrets = await loadSecrets(client)
  const imports = variables.map(([name, value]) => ({
    name,
    value,
    existing: secrets.find((secret) => secret.name === name),
    hosts: findHosts(name, host),
  }))
  assertExisting(imports, replace)
  assertHosts(imports, host)
  const written = await writeAll(client, imports)
  if (json) printJson({ secrets: written })
  else if (!quiet) {
    for (const [index, secret] of written.entries())
      printStderr(
        `${secret.name}: ${imports[index]?.existing ? 'the value is replaced for new requests' : 'created'}; ${describeUse(secret)}`,
      )
    printStderr(`Next: \`${boxCommand()} mount NAME ${written[0]?.name}\``)
  }
  for (const [index, secret] of written.entries()) warnOfLines(secret, imports[index]?.value ?? '')
}

/** Those of the provider for a well-known name, else those of --host. */
function findHosts(name: string, typed: readonly string[]): readonly string[] {
  const known = Object.hasOwn(KNOWN_SECRETS, name) ? KNOWN_SECRETS[name] : undefined
  return known?.hosts ?? typed
}

function assertNames(names: readonly string[]): void {
  if (names.length === 0) throw new CliError(EXIT.usage, 'The file has no variables.')
  const invalid = names.filter((name) => !SECRET_NAME_PATTERN.test(name))
  if (invalid.length === 0) return
  throw new CliError(
    EXIT.usage,
    `The name of a secret has uppercase letters, digits and underscores only: ${formatNames(invalid)}. Nothing was set.`,
  )
}

function assertExisting(imports: readonly Import[], replace: boolean): void {
  const existing = imports.filter((secret) => secret.existing !== undefined)
  if (replace || existing.length === 0) return
  throw new CliError(
    EXIT.failed,
    `${formatNames(existing.map(({ name }) => name))} already exist${existing.length === 1 ? 's' : ''}. Add --replace to replace the value. Nothing was set.`,
    { code: 'secret_exists' },
  )
}

function assertHosts(imports: readonly Import[], typed: readonly string[]): void {
  const created = imports.filter(({ existing }) => existing === undefined)
  const unknown = created.filter(({ hosts }) => hosts.length === 0)
  if (unknown.length > 0)
    throw new CliError(
      EXIT.usage,
      `box does not know which hosts need ${formatNames(unknown.map(({ name }) => name))}. Name them with --host, or import the other lines only: ` +
        `\`grep NAME FILE | ${boxCommand()} secrets import -\`. For variables that are no secrets: \`${boxCommand()} env NAME --file FILE\`. Nothing was set.`,
    )
  const isUsed = created.some(({ name }) => !Object.hasOwn(KNOWN_SECRETS, name))
  if (typed.length > 0 && !isUsed)
    throw new CliError(
      EXIT.usage,
      '--host is for new secrets whose hosts box does not know, and the file has none. Nothing was set. `box secrets set NAME --keep-value --host HOST` changes the hosts of a secret.',
    )
}

/** In the order of the imports. Names what was written before an error. */
async function writeAll(client: Client, imports: readonly Import[]): Promise<Secret[]> {
  const written = new Map<string, Secret>()
  // The coordinator may refuse a typed host: those secrets are first, so that nothing is written then.
  const isKnown = ({ name, existing }: Import) =>
    Number(existing !== undefined || Object.hasOwn(KNOWN_SECRETS, name))
  for (const secret of [...imports].sort((a, b) => isKnown(a) - isKnown(b)))
    try {
      written.set(secret.name, await write(client, secret))
    } catch (error) {
      const names = [...written.keys()]
      printMessage(
        names.length === 0
          ? 'nothing was set.'
          : `before this error, ${formatNames(names)} ${names.length === 1 ? 'was' : 'were'} set.`,
      )
      throw error
    }
  return imports.flatMap(({ name }) => written.get(name) ?? [])
}

async function write(client: Client, { name, value, hosts, existing }: Import): Promise<Secret> {
  if (existing !== undefined) {
    const change: PatchSecretRequest = { value }
    return (await client.request<{ secret: Secret }>('PATCH', `/secrets/${existing.id}`, change)).secret
  }
  const request: CreateSecretRequest = { name, value, hosts: [...hosts] }
  const response = client.request<{ secret: Secret }>('POST', '/secrets', request)
  return (await addHints(response, SECRET_HINTS)).secret
}

const formatNames = (names: readonly string[]): string => names.map(sanitize).join(', ')
