// Boxes as a provider of ComputeSDK (npm: @computesdk/provider 2.1): `boxwoodProvider({ url, apiKey }).sandbox.create()`, also in
// `compute.setConfig({ provider })` of the package computesdk.
import { posix } from 'node:path'
import {
  type CommandResult,
  type CreateSandboxOptions,
  defineProvider,
  type RunCommandOptions,
} from '@computesdk/provider'
import {
  type Box,
  Boxwood,
  type BoxwoodOptions,
  type CreateBox,
  type Exit,
  NotFoundError,
} from 'boxwood-client'

export type BoxwoodProviderConfig = BoxwoodOptions & {
  /** Of each new box. */
  box?: CreateBox
}

/** Only boxes with this label are listed, so that the provider shows no boxes of people. */
const LABELS = { computesdk: 'true' }
/** As `timeout` reports it. */
const TIMEOUT_EXIT_CODE = 124

const clients = new WeakMap<BoxwoodProviderConfig, Boxwood>()

function getClient(config: BoxwoodProviderConfig): Boxwood {
  const client = clients.get(config) ?? new Boxwood(config)
  clients.set(config, client)
  return client
}

const toSandbox = (box: Box) => ({ sandbox: box, sandboxId: box.id })

export const boxwoodProvider = defineProvider<Box, BoxwoodProviderConfig>({
  name: 'boxwood',
  methods: {
    sandbox: {
      async create(config, options = {}) {
        const signal = options.signal === undefined ? {} : { signal: options.signal }
        return toSandbox(await getClient(config).boxes.create(toRequest(config, options), signal))
      },
      async getById(config, sandboxId) {
        const box = await nullIfMissing(getClient(config).boxes.get(sandboxId))
        return box === null ? null : toSandbox(box)
      },
      async list(config) {
        const sandboxes = []
        for await (const box of getClient(config).boxes.list({ labels: ['computesdk'] })) {
          if (box.data.desiredState !== 'terminated') sandboxes.push(toSandbox(box))
        }
        return sandboxes
      },
      async destroy(config, sandboxId) {
        const box = await nullIfMissing(getClient(config).boxes.get(sandboxId))
        await box?.delete()
      },

      runCommand,
      /** Output arrives over the API, so no port of the box is opened for it. */
      streamCommand: runCommand,

      async getInfo(box) {
        const { id, data } = await box.refresh()
        return {
          id,
          provider: 'boxwood',
          status: toStatus(data.observedState),
          createdAt: new Date(data.createdAt),
          // A box has no time limit.
          timeout: 0,
          metadata: data.labels,
        }
      },
      /** A secret link: what calls it is not signed in. */
      async getUrl(box, { port }) {
        const { url } = await box.ports.share(port, { audience: 'anyone' })
        if (url === null)
          throw new Error(`The link to port ${port} exists, and its secret is shown once only.`)
        return url
      },

      filesystem: {
        readFile: (box, path) => box.files.read(path),
        async writeFile(box, path, content) {
          const directory = posix.dirname(path)
          if (!['.', '/', '~'].includes(directory)) await box.files.makeDirectory(directory)
          await box.files.write(path, content)
        },
        async mkdir(box, path) {
          await box.files.makeDirectory(path)
        },
        async readdir(box, path) {
          const entries = []
          for await (const { name, type, targetType, size, mtime } of box.files.list(path))
            entries.push({
              name,
              type: (targetType ?? type) === 'directory' ? ('directory' as const) : ('file' as const),
              size,
              ...(mtime !== null && { modified: new Date(mtime) }),
            })
          return entries
        },
        exists: async (box, path) => (await nullIfMissing(box.files.stat(path))) !== null,
        async remove(box, path) {
          await box.files.remove(path, { recursive: true })
        },
      },
    },
  },
})

function toRequest(
  config: BoxwoodProviderConfig,
  { name, image, envs, snapshotId }: CreateSandboxOptions,
): CreateBox {
  if (snapshotId !== undefined) throw new TypeError('Restore a snapshot with boxwood-client.')
  return {
    ...config.box,
    labels: { ...config.box?.labels, ...LABELS },
    ...(name !== undefined && { name }),
    ...(image !== undefined && { image }),
    ...(envs !== undefined && { env: { ...config.box?.env, ...envs } }),
  }
}

async function runCommand(
  box: Box,
  command: string,
  options: RunCommandOptions = {},
): Promise<CommandResult> {
  const start = performance.now()
  const { cwd, env, timeout, background, onStdout, onStderr } = options
  const startOptions = {
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(timeout !== undefined && { timeoutMs: timeout }),
  }
  if (background) {
    await box.start(command, startOptions)
    return { stdout: '', stderr: '', exitCode: 0, durationMs: performance.now() - start }
  }
  const { stdout, stderr, ...exit } = await box.exec(command, {
    ...startOptions,
    ...(onStdout !== undefined && { onStdout }),
    ...(onStderr !== undefined && { onStderr }),
  })
  return { stdout, stderr, exitCode: toExitCode(exit), durationMs: performance.now() - start }
}

function toExitCode({ status, exitCode, timedOut }: Exit): number {
  if (status === 'lost') throw new Error('It is not known how the command ended: its box stopped.')
  return timedOut ? TIMEOUT_EXIT_CODE : (exitCode ?? 137)
}

const toStatus = (state: string) =>
  state === 'running' ? 'running' : /failed|degraded/.test(state) ? 'error' : 'stopped'

async function nullIfMissing<T>(result: Promise<T>): Promise<T | null> {
  try {
    return await result
  } catch (error) {
    if (error instanceof NotFoundError) return null
    throw error
  }
}
