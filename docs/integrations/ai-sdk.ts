// A box as the sandbox session of the AI SDK (npm: ai 7): `generateText({ experimental_sandbox: createSandboxSession(box), … })`.
import { constants } from 'node:os'
import { posix } from 'node:path'
import type { Experimental_SandboxProcess, Experimental_SandboxSession } from 'ai'
import {
  type Box,
  type Exit,
  NotFoundError,
  type OutputStream,
  type Process,
  type RequestBody,
} from 'boxwood-client'

type Stat = Awaited<ReturnType<Experimental_SandboxSession['stat']>>
type EntryType = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device'
type SpawnOptions = Parameters<Experimental_SandboxSession['run']>[0] & { stdin?: boolean }

/** Relative paths resolve under the home directory of the box, in which commands start. */
export function createSandboxSession(box: Box): Experimental_SandboxSession {
  return {
    description: [
      `The sandbox is the Linux machine ${box.name}. Commands run in a shell and begin in the home directory.`,
      'Files and installed packages stay. Processes in the background run on.',
    ].join('\n'),

    readFile: ({ path, abortSignal }) => nullIfMissing(box.files.download(path, toOptions(abortSignal))),
    readBinaryFile: ({ path, abortSignal }) =>
      nullIfMissing(box.files.readBytes(path, toOptions(abortSignal))),
    async readTextFile({ path, encoding = 'utf-8', startLine = 1, endLine, abortSignal }) {
      const bytes = await nullIfMissing(box.files.readBytes(path, toOptions(abortSignal)))
      if (bytes === null) return null
      const text = new TextDecoder(encoding).decode(bytes)
      if (startLine === 1 && endLine === undefined) return text
      return text
        .split('\n')
        .slice(startLine - 1, endLine)
        .join('\n')
    },

    writeFile: ({ path, content, abortSignal }) =>
      writeFile(box, path, content as ReadableStream<Uint8Array<ArrayBuffer>>, abortSignal),
    writeBinaryFile: ({ path, content, abortSignal }) =>
      writeFile(box, path, new Uint8Array(content), abortSignal),
    async writeTextFile({ path, content, encoding = 'utf-8', abortSignal }) {
      if (!/^utf-?8$/i.test(encoding))
        throw new TypeError(`The encoding ${encoding} cannot be written, only utf-8.`)
      await writeFile(box, path, content, abortSignal)
    },

    stat: ({ path, abortSignal }) => readStat(box, path, abortSignal),
    listDirectory: ({ path, abortSignal }) => nullIfMissing(listDirectory(box, path, abortSignal)),
    async deleteFile({ path, abortSignal }) {
      const entry = await nullIfMissing(box.files.stat(path, toOptions(abortSignal)))
      if (entry === null) return false
      if (entry.type === 'directory') throw new Error(`${path} is a directory.`)
      return (await nullIfMissing(box.files.remove(path, toOptions(abortSignal)))) !== null
    },

    async run(options) {
      const result = await box.exec(options.command, toStartOptions(options))
      return { exitCode: toExitCode(result), stdout: result.stdout, stderr: result.stderr }
    },
    spawn,
  }

  function spawn(options: SpawnOptions & { stdin: true }): Promise<never>
  function spawn(options: SpawnOptions): Promise<Experimental_SandboxProcess>
  async function spawn(options: SpawnOptions): Promise<Experimental_SandboxProcess> {
    // A session that cannot write standard input must refuse it before it starts the command.
    if (options.stdin) throw new Error('A command that runs on has no standard input.')
    const process = await box.start(options.command, toStartOptions(options))
    return createProcess(process, options.abortSignal)
  }
}

function createProcess(process: Process, abortSignal: AbortSignal | undefined): Experimental_SandboxProcess {
  const kill = async (): Promise<void> => {
    await nullIfMissing(process.kill())
  }
  if (abortSignal?.aborted) kill().catch(() => undefined)
  abortSignal?.addEventListener('abort', () => kill().catch(() => undefined), { once: true })
  return {
    stdout: readStream(process, 'stdout'),
    stderr: readStream(process, 'stderr'),
    wait: async () => ({ exitCode: toExitCode(await process.wait(toOptions(abortSignal))) }),
    kill,
  }
}

/** The bytes of one stream, which are read as fast as their reader reads. */
function readStream(process: Process, stream: OutputStream): ReadableStream<Uint8Array> {
  const output = process.output({ stream })
  return new ReadableStream(
    {
      async pull(controller) {
        const next = await output.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value.bytes)
      },
      async cancel() {
        await output.return(undefined as never)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Creates the directories above the file too. */
async function writeFile(
  box: Box,
  path: string,
  content: RequestBody,
  abortSignal?: AbortSignal,
): Promise<void> {
  const directory = posix.dirname(path)
  if (!['.', '/', '~'].includes(directory)) await box.files.makeDirectory(directory, toOptions(abortSignal))
  await box.files.write(path, content, toOptions(abortSignal))
}

/** The box reports a symbolic link itself, and the session what it leads to. */
async function readStat(box: Box, path: string, abortSignal?: AbortSignal): Promise<Stat> {
  const entry = await nullIfMissing(box.files.stat(path, toOptions(abortSignal)))
  if (entry === null) return null
  if (entry.type !== 'symlink') return { type: toType(entry.type), size: entry.size }
  if (!entry.targetType) return null
  const options = { ...toOptions(abortSignal), env: { TARGET: path } }
  const { stdout } = await box.exec('stat -L -c %s -- "$TARGET"', options)
  return { type: toType(entry.targetType), size: Number(stdout) }
}

async function listDirectory(box: Box, path: string, abortSignal?: AbortSignal) {
  const entries: { name: string; type: 'file' | 'directory' | 'symlink' | 'other' }[] = []
  for await (const { name, type } of box.files.list(path, toOptions(abortSignal)))
    entries.push({ name, type: type === 'symlink' ? type : toType(type) })
  return entries
}

const toType = (type: EntryType): 'file' | 'directory' | 'other' =>
  type === 'file' || type === 'directory' ? type : 'other'

/** As a shell reports it: 128 and the number of the signal. */
function toExitCode({ status, exitCode, signal }: Exit): number {
  if (status === 'lost') throw new Error('It is not known how the command ended: its box stopped.')
  return exitCode ?? 128 + (constants.signals[`SIG${signal}` as keyof typeof constants.signals] ?? 0)
}

const toOptions = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal })

const toStartOptions = ({ workingDirectory, env, abortSignal }: SpawnOptions) => ({
  ...(workingDirectory !== undefined && { cwd: workingDirectory }),
  ...(env !== undefined && { env }),
  ...toOptions(abortSignal),
})

async function nullIfMissing<T>(result: Promise<T>): Promise<T | null> {
  try {
    return await result
  } catch (error) {
    if (error instanceof NotFoundError) return null
    throw error
  }
}
