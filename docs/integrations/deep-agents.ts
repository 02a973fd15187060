// A box as the backend of LangChain Deep Agents (npm: deepagents 1.14): `createDeepAgent({ backend: new BoxSandbox(box), … })`.
//
// BaseSandbox makes the other methods of SandboxBackendProtocol from these three: ls, read, write, edit, grep and glob.
import { posix } from 'node:path'
import type { Box } from 'boxwood-client'
import { BoxwoodError } from 'boxwood-client'
import { BaseSandbox, type ExecuteResponse, type FileOperationError } from 'deepagents'

const MAX_OUTPUT_LENGTH = 100_000

export class BoxSandbox extends BaseSandbox {
  readonly id: string
  readonly #box: Box
  readonly #timeoutMs: number

  /** @param timeoutMs the box ends each command after this time */
  constructor(box: Box, { timeoutMs = 600_000 }: { timeoutMs?: number } = {}) {
    super()
    this.id = box.id
    this.#box = box
    this.#timeoutMs = timeoutMs
  }

  /** Commands begin in the home directory. */
  override async execute(command: string): Promise<ExecuteResponse> {
    const parts: string[] = []
    const append = (text: string) => parts.push(text)
    const options = { timeoutMs: this.#timeoutMs, onStdout: append, onStderr: append }
    const { exitCode, timedOut, missing } = await this.#box.exec(command, options)
    if (timedOut) append(`\nThe command was terminated after ${this.#timeoutMs / 1000} seconds.`)
    const output = parts.join('')
    return {
      output: output.slice(0, MAX_OUTPUT_LENGTH),
      exitCode,
      truncated: output.length > MAX_OUTPUT_LENGTH || missing.stdout + missing.stderr > 0,
    }
  }

  /** A file that fails does not stop the others. */
  override uploadFiles(files: [path: string, content: Uint8Array][]) {
    return Promise.all(
      files.map(async ([path, content]) => {
        const error = await readFileError(async () => {
          await this.#box.files.makeDirectory(posix.dirname(path))
          await this.#box.files.write(path, new Uint8Array(content))
        })
        return { path, error }
      }),
    )
  }

  override downloadFiles(paths: string[]) {
    return Promise.all(
      paths.map(async (path) => {
        let content: Uint8Array | null = null
        const error = await readFileError(async () => {
          // Of a directory, the client would download an archive.
          const { type, targetType } = await this.#box.files.stat(path)
          if ((targetType ?? type) === 'directory') throw new FileError('is_directory')
          content = await this.#box.files.readBytes(path)
        })
        return { path, content, error }
      }),
    )
  }
}

class FileError extends Error {
  readonly code: FileOperationError

  constructor(code: FileOperationError) {
    super(code)
    this.code = code
  }
}

/** Other errors, such as that the box does not exist, are thrown. */
async function readFileError(call: () => Promise<void>): Promise<FileOperationError | null> {
  try {
    await call()
    return null
  } catch (error) {
    if (error instanceof FileError) return error.code
    const code = error instanceof BoxwoodError ? FILE_ERRORS[error.code] : undefined
    if (code === undefined) throw error
    return code
  }
}

/** By the codes of the API. */
const FILE_ERRORS: Readonly<Record<string, FileOperationError>> = {
  not_found: 'file_not_found',
  permission_denied: 'permission_denied',
  invalid_path: 'invalid_path',
}
