// Reads the files of a box as a tar stream, in a worker thread.
import { readTarOutput, startTar, type TarProcess } from './run-tar.ts'
import { StoreLimitError } from './store-limits.ts'
import type { ReadCommands, TarCommand } from './tar.ts'

type Consume = (stream: TarProcess['stdout']) => Promise<void>

/**
 * Resolves when tar has exited. A failure terminates tar before it is thrown.
 * @param consume resolves when the stream has ended
 */
export async function readStream(pack: TarCommand, signal: AbortSignal, consume: Consume): Promise<void> {
  const reading = new AbortController()
  const tar = startTar(pack, AbortSignal.any([signal, reading.signal]))
  tar.stdin.end()
  try {
    await consume(tar.stdout)
    await tar.exited
  } catch (error) {
    reading.abort()
    await tar.exited.catch(() => {})
    throw error
  }
}

/**
 * Returns the disk space that the files occupy, in bytes. Throws StoreLimitError for a path that is too long for tar. A failure
 * terminates all commands before it is thrown.
 */
export async function readBoxFiles(
  commands: ReadCommands,
  signal: AbortSignal,
  consume: Consume,
): Promise<number> {
  const reading = new AbortController()
  const readSignal = AbortSignal.any([signal, reading.signal])
  const tasks = [
    readStream(commands.pack, readSignal, consume),
    readTarOutput(commands.measure, readSignal),
    readTarOutput(commands.findLongPath, readSignal),
  ] as const
  const [, usage, longPath] = await Promise.all(tasks).catch(async (error) => {
    reading.abort()
    await Promise.allSettled(tasks)
    throw error
  })
  if (longPath !== '')
    throw new StoreLimitError(
      `The path that starts with ${longPath.slice(0, 100).replace(/[^ -~]/g, '?')} is longer than 4095 bytes. Shorten it, then try again.`,
    )
  return parseUsage(usage)
}

/** @param usage the output of the command `measure` */
export const parseUsage = (usage: string): number =>
  Number.parseInt(usage.trimEnd().split('\n').at(-1) ?? '', 10) * 1024
