// Boxes as the sandboxes of the OpenAI Agents SDK (npm: @openai/agents 0.20), for agents of the class SandboxAgent:
//
//   run(agent, input, { sandbox: { client: new BoxwoodSandboxClient(boxwood) } })          a new box, which is deleted after the run
//   run(agent, input, { sandbox: { session: await createSandboxSession(box) } })           a box that exists, and stays
import { posix } from 'node:path'
import { applyDiff, type Editor, UserError } from '@openai/agents'
import type * as sdk from '@openai/agents/sandbox'
import { isMount, Manifest, normalizeSandboxClientCreateArgs } from '@openai/agents/sandbox'
import { type Box, type Boxwood, type CreateBox, NotFoundError } from 'boxwood-client'

/** What the model gets of an output when it names no limit. */
const MAX_OUTPUT_TOKENS = 10_000
const BYTES_PER_TOKEN = 4
/** The box ends each command after this time, by default. */
const TIMEOUT_MS = 600_000
const IMAGE_TYPES: Record<string, string> = { png: 'png', jpg: 'jpeg', jpeg: 'jpeg', webp: 'webp' }

export class BoxwoodSandboxClient implements sdk.SandboxClient {
  readonly backendId = 'boxwood'
  readonly create: sdk.SandboxClientCreate

  /** @param request of each new box, such as `{ image: 'debian:12' }` */
  constructor(boxwood: Boxwood, request: CreateBox = {}, timeoutMs?: number) {
    this.create = async (args?: Parameters<typeof normalizeSandboxClientCreateArgs>[0]) => {
      const { manifest, snapshot } = normalizeSandboxClientCreateArgs(args)
      if (snapshot !== undefined) throw new UserError('A box has no snapshots of this SDK.')
      checkManifest(manifest)
      const box = await boxwood.boxes.create(request)
      try {
        const session = await createSandboxSession(box, manifest, timeoutMs)
        return Object.assign(session, { delete: () => box.delete() })
      } catch (error) {
        await box.delete()
        throw error
      }
    }
  }
}

/** A session of a box. The SDK does not end it. The directory of the manifest is by default ~/workspace. */
export async function createSandboxSession(box: Box, manifest = new Manifest(), timeoutMs = TIMEOUT_MS) {
  checkManifest(manifest)
  const home = (await box.exec('cd && pwd')).stdout.trim()
  const root = manifest.root === new Manifest().root ? posix.join(home, 'workspace') : manifest.root
  const { entries, environment } = manifest
  const state = {
    manifest: new Manifest({ root, entries, environment }),
    environment: await manifest.resolveEnvironment(),
  }
  const session = new BoxSession(box, state, timeoutMs)
  await box.files.makeDirectory(root)
  await session.applyManifest(manifest)
  return session
}

function checkManifest({ entries, users, groups }: Manifest): void {
  if (users.length + groups.length > 0) throw new UserError('A box takes no users of a manifest.')
  for (const [path, entry] of Object.entries(entries)) checkEntry(path, entry)
}

function checkEntry(path: string, entry: sdk.Entry): void {
  if (isMount(entry) || (entry.type !== 'dir' && entry.type !== 'file'))
    throw new UserError(`A box takes files and directories of a manifest: ${path} is neither.`)
  for (const [name, child] of listChildren(entry)) checkEntry(posix.join(path, name), child)
}

const listChildren = (entry: sdk.Entry) => Object.entries((entry.type === 'dir' && entry.children) || {})

class BoxSession implements sdk.SandboxSession {
  readonly box: Box
  readonly state: sdk.SandboxSessionState
  readonly #timeoutMs: number

  constructor(box: Box, state: sdk.SandboxSessionState, timeoutMs: number) {
    this.box = box
    this.state = state
    this.#timeoutMs = timeoutMs
  }

  /** Runs the command to its end: a box has no sessions of this SDK, in which a command runs on. */
  async exec(args: sdk.ExecCommandArgs): Promise<sdk.SandboxExecResult> {
    const { cmd, workdir, shell, login, runAs, maxOutputTokens } = args
    checkUser(runAs)
    const start = performance.now()
    const output: string[] = []
    const append = (text: string) => output.push(text)
    const { stdout, stderr, exitCode, signal, timedOut } = await this.box.exec(
      shell === undefined ? cmd : `exec ${quote(shell)} ${login ? '-l ' : ''}-c ${quote(cmd)}`,
      {
        cwd: this.#resolve(workdir),
        env: this.state.environment ?? {},
        timeoutMs: this.#timeoutMs,
        onStdout: append,
        onStderr: append,
      },
    )
    if (timedOut) append(`\nThe command was terminated after ${this.#timeoutMs / 1000} seconds.`)
    else if (exitCode === null) append(`\nThe command was terminated${signal ? ` by ${signal}` : ''}.`)
    const wallTimeSeconds = (performance.now() - start) / 1000
    return { output: shorten(output.join(''), maxOutputTokens), stdout, stderr, wallTimeSeconds, exitCode }
  }

  async execCommand(args: sdk.ExecCommandArgs): Promise<string> {
    const { output, exitCode, wallTimeSeconds } = await this.exec(args)
    const exit = exitCode === null ? [] : [`Process exited with code ${exitCode}`]
    return [`Wall time: ${wallTimeSeconds.toFixed(4)} seconds`, ...exit, 'Output:', output].join('\n')
  }

  async readFile({ path, maxBytes }: { path: string; maxBytes?: number }) {
    return (await this.box.files.readBytes(this.#resolve(path))).subarray(0, maxBytes)
  }

  async listDir({ path }: { path: string }): Promise<sdk.SandboxDirectoryEntry[]> {
    const entries: sdk.SandboxDirectoryEntry[] = []
    for await (const { name, type } of this.box.files.list(this.#resolve(path)))
      entries.push({ name, path: posix.join(path, name), type: type === 'directory' ? 'dir' : toType(type) })
    return entries
  }

  async pathExists(path: string): Promise<boolean> {
    return (await this.#readType(path)) !== null
  }

  async directoryExists(path: string): Promise<boolean> {
    return (await this.#readType(path)) === 'directory'
  }

  async materializeEntry({ path, entry }: { path: string; entry: sdk.Entry }): Promise<void> {
    checkEntry(path, entry)
    if (entry.type === 'file') return this.#write(path, entry.content as string | Uint8Array<ArrayBuffer>)
    await this.box.files.makeDirectory(this.#resolve(path))
    for (const [name, child] of listChildren(entry))
      await this.materializeEntry({ path: posix.join(path, name), entry: child })
  }

  async applyManifest({ entries }: Manifest): Promise<void> {
    for (const [path, entry] of Object.entries(entries)) await this.materializeEntry({ path, entry })
  }

  async viewImage({ path }: { path: string }) {
    const type = IMAGE_TYPES[posix.extname(path).slice(1).toLowerCase()]
    if (type === undefined) throw new UserError(`${path}: unsupported image format.`)
    const data = await this.readFile({ path })
    return { type: 'image' as const, image: { data, mediaType: `image/${type}` } }
  }

  createEditor(runAs?: string): Editor {
    checkUser(runAs)
    return {
      createFile: async ({ path, diff }) => {
        if (await this.pathExists(path)) throw new UserError(`Cannot create ${path}: it exists.`)
        await this.#write(path, applyDiff('', diff, 'create'))
      },
      updateFile: async ({ path, diff, moveTo = path }) => {
        await this.#write(moveTo, applyDiff(await this.box.files.read(this.#resolve(path)), diff))
        if (this.#resolve(moveTo) !== this.#resolve(path)) await this.box.files.remove(this.#resolve(path))
      },
      deleteFile: async ({ path }) => {
        await this.box.files.remove(this.#resolve(path))
      },
    }
  }

  #resolve(path = '.'): string {
    return posix.resolve(this.state.manifest.root, path)
  }

  async #write(path: string, content: string | Uint8Array<ArrayBuffer>): Promise<void> {
    await this.box.files.makeDirectory(posix.dirname(this.#resolve(path)))
    await this.box.files.write(this.#resolve(path), content)
  }

  /** The type of what a symbolic link leads to. */
  async #readType(path: string): Promise<string | null> {
    try {
      const { type, targetType } = await this.box.files.stat(this.#resolve(path))
      return targetType === undefined ? type : targetType
    } catch (error) {
      if (error instanceof NotFoundError) return null
      throw error
    }
  }
}

function checkUser(runAs: string | undefined): void {
  if (runAs !== undefined) throw new UserError('A box has one user. Omit runAs.')
}

const toType = (type: string): 'file' | 'other' => (type === 'file' ? 'file' : 'other')
const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** The first and the last part of an output that is too long. */
function shorten(output: string, tokens = MAX_OUTPUT_TOKENS): string {
  const half = (tokens * BYTES_PER_TOKEN) / 2
  const omitted = output.length - 2 * half
  return omitted <= 0
    ? output
    : `${output.slice(0, half)}\n[${omitted} characters omitted]\n${output.slice(-half)}`
}
