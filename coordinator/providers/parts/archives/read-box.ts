// Reads the files of a box as a tar stream, in a worker thread.
import { readTarOutput, startTar, type TarProcess } from './run-tar.ts'
import { StoreLimitError } from './store-limits.ts'
import type { ReadCommands } from './tar.ts'

/**
 * Returns the disk space that the files occupy, in bytes, when tar has exited. Throws StoreLimitError for a path that is too
 * long for tar. A failure terminates all commands before it is thrown.
 * @param consume resolves when the stream has ended
 */
export async function readBoxFiles(
  commands: ReadCommands,
  signal: AbortSignal,
  consume: (stream: TarProcess['stdout']) => Promise<void>,
): Promise<number> {
  const reading = new AbortController()
  const readSignal = AbortSignal.any([signal, reading.signal])
  const pack = startTar(commands.pack, readSignal)
  pack.stdin.end()
  const tasks = [
    consume(pack.stdout).then(() => pack.exited),
    readTarOutput(commands.measure, readSignal),
    readTarOutput(commands.findLongPath, readSignal),
  ] as const
  const [, usage, longPath] = await Promise.all(tasks).catch(async (error) => {
    reading.abort()
    await Promise.allSettled([...tasks, pack.exited])
    throw error
  })
  if (longPath !== '')
    throw new StoreLimitError(
      `The path that starts with ${longPath.slice(0, 100).replace(/[^ -~]/g, '?')} is longer than 4095 bytes. Shorten it, then try again.`,
    )
  return Number.parseInt(usage.trimEnd().split('\n').at(-1) ?? '', 10) * 1024
}
