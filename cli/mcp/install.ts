// Writes the configuration of a host, with an API key of its own.
import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import type { Account } from '../../shared/api/account.ts'
import type { CreateKeyRequest, KeyWithSecret } from '../../shared/api/keys.ts'
import { LIMITS } from '../../shared/limits.ts'
import { boxCommand } from '../command-name.ts'
import { createClient } from '../connection/client.ts'
import { getRootUrl } from '../connection/find-coordinator.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printMessage, printStderr } from '../output/print.ts'
import { PROJECT_DIR } from '../project-directory.ts'
import { ConfigError, findEntry, formatEntry, setEntry } from './edit-config.ts'
import { getHostFile, HOST_FILES, type Host, type HostName } from './hosts.ts'
import type { ServeOptions } from './serve.ts'

export type InstallOptions = ServeOptions & { print?: boolean }

/** In the place of the key, for a person who creates one. */
const KEY_EXAMPLE = 'dcp_…'

/** A new key replaces that of an earlier installation, which is revoked. */
export async function install(session: Session, name: HostName, options: InstallOptions): Promise<undefined> {
  const host = HOST_FILES[name]
  const url = getRootUrl(session.coordinator.baseUrl)
  const file = getHostFile(host, process.env)
  const toEntry = (key: string) =>
    host.toEntry({
      command: join(PROJECT_DIR, 'box'),
      args: ['mcp', ...toArguments(options)],
      env: { BOXWOOD_URL: url, BOXWOOD_API_KEY: key },
    })
  if (options.print) {
    printStderr(
      `For ${file}. Create the key with \`${boxCommand()} keys create ${name} --access boxes=write\`:`,
    )
    print(formatEntry(host, toEntry(KEY_EXAMPLE)).trimEnd())
    return undefined
  }
  const text = readConfig(file)
  // Before the key is created: nothing is left behind when the file cannot be changed.
  edit(host, name, file, () => setEntry(host, text, toEntry(KEY_EXAMPLE)))
  const replaced = findKeyOf(
    edit(host, name, file, () => findEntry(host, text)),
    url,
  )
  const { key, secret } = await createKey(session, host, options)
  try {
    writeConfig(file, setEntry(host, readConfig(file), toEntry(secret)))
  } catch (error) {
    await session.client.requestBySession('DELETE', `/keys/${key.id}`)
    throw error
  }
  printStderr(
    `${host.title} starts \`box mcp\` from now on: ${file} has the server, with the key ${key.name}.`,
  )
  printStderr(`Revoke the key with \`${boxCommand()} keys rm ${key.id}\`.`)
  if (replaced !== null) await revoke(session, replaced)
}

/** Without the options that a key limits as well: --box and --read-only stay, so that the tools fit. */
function toArguments({
  readOnly,
  box = [],
  create,
  allowDelete,
  allowPublic,
  maxWait,
}: ServeOptions): string[] {
  return [
    ...(readOnly ? ['--read-only'] : []),
    ...box.flatMap((name) => ['--box', name]),
    ...(create ? [] : ['--no-create']),
    ...(allowDelete ? ['--allow-delete'] : []),
    ...(allowPublic ? ['--allow-public'] : []),
    ...(maxWait === undefined ? [] : ['--max-wait', String(maxWait)]),
  ]
}

async function createKey({ client }: Session, { title }: Host, { readOnly, box }: ServeOptions) {
  const boxes = await Promise.all((box ?? []).map((name) => client.findBox(name)))
  const request: CreateKeyRequest = {
    name: `${title} on ${hostname()}`.slice(0, LIMITS.keyNameChars),
    access: { boxes: readOnly ? 'read' : 'write' },
    ...(boxes.length > 0 && { boxIds: boxes.map(({ id }) => id) }),
  }
  return client.requestBySession<KeyWithSecret>('POST', '/keys', request)
}

/** The key of an earlier installation for the same coordinator. */
function findKeyOf(entry: Record<string, unknown> | undefined, url: string): string | null {
  const env = (entry?.env ?? entry?.environment) as Record<string, unknown> | undefined
  const key = env?.BOXWOOD_API_KEY
  return env?.BOXWOOD_URL === url && typeof key === 'string' ? key : null
}

async function revoke({ client, coordinator, signal }: Session, secret: string): Promise<void> {
  try {
    const { profile: _, ...config } = coordinator
    const account = await createClient({ ...config, key: secret }, signal).request<Account>(
      'GET',
      '/me?box=-',
    )
    if (account.key !== undefined) await client.requestBySession('DELETE', `/keys/${account.key.id}`)
  } catch (error) {
    if (!(error instanceof CliError) || signal.aborted) throw error
    // The usual reason: the key was revoked before.
    printMessage(`the earlier key was not revoked: ${error.message}`)
  }
}

function edit<T>(host: Host, name: HostName, file: string, change: () => T): T {
  try {
    return change()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new CliError(
      EXIT.failed,
      `${file} was not changed, because ${error.message}. \`${boxCommand()} mcp install ${name} --print\` shows what to add for ${host.title}.`,
    )
  }
}

function readConfig(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw new CliError(EXIT.failed, `Cannot read ${file}: ${(error as Error).message}.`)
  }
}

/** Replaces the file at once. Only its user can read it: it has a key. */
function writeConfig(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    const target = resolveLink(file)
    const temporary = `${target}.${crypto.randomUUID()}.tmp`
    try {
      writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' })
      chmodSync(temporary, 0o600)
      renameSync(temporary, target)
    } finally {
      rmSync(temporary, { force: true })
    }
  } catch (error) {
    throw new CliError(EXIT.failed, `Cannot write ${file}: ${(error as Error).message}.`)
  }
}

/** The file may be a link into a directory of configurations. */
function resolveLink(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}
