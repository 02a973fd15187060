// Writes the public documents of the identity issuer into a directory that a static host serves.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { FederationDocuments } from '../../shared/api/federation.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'

export async function publishDocuments(
  { client }: Session,
  directory: string,
  { json, quiet }: JsonOption & QuietOption,
): Promise<undefined> {
  const { issuer, openidConfiguration, jwks } = await client.request<FederationDocuments>(
    'GET',
    '/federation/documents',
  )
  const files = {
    // First: the configuration refers to the keys.
    [join(directory, 'jwks')]: jwks,
    [join(directory, '.well-known', 'openid-configuration')]: openidConfiguration,
  }
  for (const [path, content] of Object.entries(files)) await replaceFile(path, content)
  if (json) printJson({ issuer, files: Object.keys(files) })
  else if (!quiet)
    printStderr(
      `Wrote ${Object.keys(files).join(' and ')}. ${sanitize(issuer)} must serve this directory, with the content type application/json. Publish the files again each day: the keys change.`,
    )
}

/** A host never serves half a file. @throws CliError */
async function replaceFile(path: string, content: object): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o644 })
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined)
    throw new CliError(EXIT.failed, `${path} cannot be written: ${(error as Error).message}`)
  }
}
